-- Commands of a pool that wait for a worker, oldest first: of one tenant ($2), with one of these tools
-- ($3) and not of an execution ($4), each when it is given.
select event_id, execution_id, issued_seq, step_name, tool_kind, attempt, pool, limit_ms,
    status, worker_id, created_at, completed_at
from noetl.command_pending_1($1, $2, $3, $4, $5)
