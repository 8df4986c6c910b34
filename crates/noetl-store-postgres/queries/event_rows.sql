-- A stretch of one execution's log in the order of event ids, both bounds included. Rows of an
-- adopted log that were never opened have no place yet.
select execution_id, coalesce(seq, 0), event_id, created_at, origin, event_type, node_name,
    node_type, status, command_id, parent_execution_id, worker_id, context::text, result::text,
    meta::text, error, duration, idempotency_key
from noetl.event
where execution_id = $1 and event_id between $2 and $3
    and ($4::timestamp is null or created_at <= $4)
order by event_id limit $5
