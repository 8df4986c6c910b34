-- Commands of an execution that have a lease, by id.
select event_id, execution_id, issued_seq, step_name, tool_kind, attempt, pool, limit_ms,
    status, worker_id, created_at, completed_at
from noetl.command
where lease_until is not null and issued_seq is not null and execution_id = $1
order by event_id
