-- Executions of a tenant in one status, newest start first, of equal starts the larger id first.
select execution_id, catalog_id, path, playbook_version, parent_execution_id, status, version,
    start_time, updated_at, end_time, error, steps_entered, steps_completed, steps_failed,
    steps_running, current_step
from noetl.execution
where tenant_id = $1
    and ($2::text is null or position($2 in path_folded) > 0)
    and ($3::bigint is null or catalog_id = $3)
    and ($6::timestamptz is null or start_time < $6)
    and ($7::timestamptz is null or start_time >= $7)
    and ($8::text is null or position($8 in path_folded) > 0
        or position($9::text in execution_id::text) > 0
        or position($9 in coalesce(error, '')) > 0)
    and status = $10
order by start_time desc, execution_id desc
limit $4 offset $5
