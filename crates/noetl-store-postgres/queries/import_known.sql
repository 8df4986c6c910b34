-- Returns the rows that their logs hold already. The order names the index to read; `between` finds
-- one row, because a column that equals a value has no order.
select i.execution_id, i.event_id
from unnest($1::bigint[], $2::bigint[]) i (execution_id, event_id)
cross join lateral (
    select from noetl.event e
    where e.execution_id = i.execution_id and e.event_id between i.event_id and i.event_id
    order by e.event_id limit 1
) known
