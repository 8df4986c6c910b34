-- The smallest event id after a place, from the rows after it alone: taken as one of the whole log it
-- would be looked for from the log's beginning. Beside it the first append with an event after the
-- place: appends after that one have smaller ids only with an entry.
with since as materialized (
    (select event_id from noetl.event_row where execution_id = $1 and seq > $2 order by seq)
    union all
    (select event_id from noetl.event_row where execution_id = $1 and seq is null order by seq)
    union all
    (
        select id from noetl.event_lookup
        where execution_id = $1 and seq > $2 and not is_key
        order by id limit 1
    )
)
select least.id, a.first_seq, a.last_seq, a.last_event_id, a.created_at, a.body
from (select min(event_id) as id from since) least
left join lateral (
    select * from noetl.event_append n
    where n.execution_id = $1 and n.last_seq > $2 and n.first_seq >= coalesce((
        select c.first_seq from noetl.event_append c
        where c.execution_id = $1 and c.first_seq <= $2 order by c.first_seq desc limit 1
    ), $2)
    order by n.first_seq limit 1
) a on true
