-- Rows of one execution's log whose ids grow with their places, from an append on. What events were
-- told is left out: it may be large, and nobody reads it here.
select e.execution_id, e.seq, e.event_id, e.created_at, e.origin, e.event_type, e.node_name,
    e.node_type, e.status, e.command_id, e.parent_execution_id, e.worker_id, e.meta, e.error,
    null, e.result, e.duration, e.idempotency_key, e.more
from event_row a cross join event_row e
where a.execution_id = ?1
    and a.append_rows is not null
    and a.seq >= ?2
    and e.position between a.position and a.position + a.append_rows - 1
    and e.is_late is null
    and e.event_id >= ?3
order by a.seq, e.position
