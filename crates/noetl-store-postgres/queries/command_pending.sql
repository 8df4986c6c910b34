-- Commands of a pool that wait for a worker, oldest first: of one tenant ($2), with one of these tools
-- ($3) and not of an execution ($4), each when it is given.
select event_id, execution_id, issued_seq, step_name, tool_kind, attempt, pool, limit_ms,
    status, worker_id, created_at, completed_at
from noetl.command c
where status = 'PENDING' and issued_seq is not null
    and pool = $1
    and ($2::text is null or exists (
        select from noetl.execution e where e.execution_id = c.execution_id and e.tenant_id = $2
    ))
    and ($3::text[] is null or tool_kind = any ($3))
    and ($4::bigint is null or execution_id <> $4)
order by event_id limit $5
