-- The first appends of a log.
select first_seq, last_seq, last_event_id, created_at, body
from event_append
where execution_id = ?1
order by first_seq limit ?2
