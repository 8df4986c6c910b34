-- Counts a read of a variable that has not expired, and returns it as it is after that.
update noetl.transient
set access_count = least(coalesce(access_count, 0), 2147483646) + 1, accessed_at = now()
where tenant_id = $1 and execution_id = $2 and var_name = $3
    and (expires_at is null or expires_at > now())
returning var_name, var_type, coalesce(body, var_value::text), source_step, scope,
    expires_at::timestamptz, created_at::timestamptz, accessed_at::timestamptz,
    coalesce(access_count, 0)::bigint
