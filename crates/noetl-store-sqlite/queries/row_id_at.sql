-- The id of the event at a place.
select e.event_id
from event_row a cross join event_row e
where a.execution_id = ?1
    and a.append_rows is not null
    and a.seq = (
        select max(seq) from event_row
        where execution_id = ?1 and append_rows is not null and seq <= ?2
    )
    and e.position = a.position + ?2 - a.seq
    and e.execution_id = ?1
    and e.seq = ?2
