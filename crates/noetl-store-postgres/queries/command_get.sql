-- One command.
select event_id, execution_id, issued_seq, step_name, tool_kind, attempt, pool, limit_ms,
    status, worker_id, created_at, completed_at
from noetl.command
where event_id = $1 and issued_seq is not null
