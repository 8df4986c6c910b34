-- The appends of a log from the one that holds this sequence number, or from the first after it.
select first_seq, last_seq, last_event_id, created_at, body
from event_append
where execution_id = ?1
    and first_seq >= coalesce((
        select max(first_seq) from event_append where execution_id = ?1 and first_seq <= ?2
    ), 0)
order by first_seq
