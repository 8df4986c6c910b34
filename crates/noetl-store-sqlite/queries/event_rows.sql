-- A stretch of one execution's log in the order of event ids, both bounds included. What
-- events were told is left out: it may be large, and nobody reads it here.
select execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type, status,
    command_id, parent_execution_id, worker_id, meta, error, null, result, duration,
    idempotency_key, more
from event indexed by event_id
where execution_id = ?1 and event_id between ?2 and ?3 and (?4 is null or created_at <= ?4)
order by event_id limit ?5
