-- The smallest event id after a place, from the rows after it alone.
select min(e.event_id)
from event_row a cross join event_row e
where a.execution_id = ?1
    and a.append_rows is not null
    and a.seq >= coalesce((
        select max(seq) from event_row
        where execution_id = ?1 and append_rows is not null and seq <= ?2 + 1
    ), 0)
    and e.position between a.position and a.position + a.append_rows - 1
    and e.seq > ?2
