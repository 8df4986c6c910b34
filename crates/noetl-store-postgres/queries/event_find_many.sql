-- Those of the ids that a row or an entry of this log has, and the appends that can have others.
select event_id, first_seq, last_seq, last_event_id, created_at, body
from noetl.event_find_many_2($1, $2, $3)
