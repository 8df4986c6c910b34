-- The last append of a log that starts at this sequence number or earlier, without its body.
select first_seq, last_seq, last_event_id, coalesce(newest_event_id, last_event_id)
from event_append
where execution_id = ?1 and first_seq <= ?2
order by first_seq desc limit 1
