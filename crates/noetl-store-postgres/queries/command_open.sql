-- Commands that are not terminal, above an id, oldest first, read from their own small index.
select event_id, execution_id, issued_seq, step_name, tool_kind, attempt, pool, limit_ms,
    status, worker_id, created_at, completed_at
from noetl.command
where completed_at is null and issued_seq is not null and event_id > $1
order by event_id limit $2
