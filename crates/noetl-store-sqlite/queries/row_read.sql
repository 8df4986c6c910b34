-- A stretch of one execution's log, oldest first: from the append that holds its first row on.
select e.execution_id, e.seq, e.event_id, e.created_at, e.origin, e.event_type, e.node_name,
    e.node_type, e.status, e.command_id, e.parent_execution_id, e.worker_id, e.meta, e.error,
    e.context, e.result, e.duration, e.idempotency_key, e.more
from event_row a cross join event_row e
where a.execution_id = ?1
    and a.append_rows is not null
    and a.seq >= coalesce((
        select max(seq) from event_row
        where execution_id = ?1 and append_rows is not null and seq <= ?2 + 1
    ), 0)
    and e.position between a.position and a.position + a.append_rows - 1
    and e.seq > ?2
order by a.seq, e.position limit ?3
