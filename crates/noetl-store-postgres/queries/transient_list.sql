-- Variables of an execution that have not expired, in the order of their names' bytes.
select var_name, var_type, coalesce(body, var_value::text), source_step, scope,
    expires_at::timestamptz, created_at::timestamptz, accessed_at::timestamptz,
    coalesce(access_count, 0)::bigint
from noetl.transient
where tenant_id = $1 and execution_id = $2 and (expires_at is null or expires_at > now())
order by var_name collate "C"
