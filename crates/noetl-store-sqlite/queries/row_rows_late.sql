-- The other rows of one execution's log, in the order of their ids.
select execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type, status,
    command_id, parent_execution_id, worker_id, meta, error, null, result, duration,
    idempotency_key, more
from event_row indexed by event_late
where execution_id = ?1 and is_late = 1 and event_id >= ?2
order by event_id
