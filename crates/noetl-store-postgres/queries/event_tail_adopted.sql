-- Rows another program wrote before the database was ours, which have no position: those with the
-- next event ids, oldest first. Rows that share an id come together.
select e.execution_id, coalesce(e.seq, 0), e.event_id, e.created_at, e.origin, e.event_type,
    e.node_name, e.node_type, e.status, e.command_id, e.parent_execution_id, e.worker_id,
    e.context::text, e.result::text, e.meta::text, e.error, e.duration, e.idempotency_key,
    e.event_id, e.tenant_id, coalesce(e.catalog_id, x.catalog_id), e.prev_event_id
from noetl.event e
left join noetl.execution x on x.execution_id = e.execution_id
where e.lane is null and e.event_id > $1 and e.event_id <= (
    select max(n.event_id) from (
        select a.event_id from noetl.event a
        where a.lane is null and a.event_id > $1
        order by a.event_id limit $2
    ) n
)
order by e.event_id, e.execution_id
