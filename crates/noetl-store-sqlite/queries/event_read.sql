-- A stretch of one execution's log, oldest first.
select execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type, status,
    command_id, parent_execution_id, worker_id, meta, error, context, result, duration,
    idempotency_key, more
from event
where execution_id = ?1 and seq > ?2
order by seq limit ?3
