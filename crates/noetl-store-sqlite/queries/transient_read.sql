-- Counts a read of a variable that has not expired, and returns it as it is after that.
update transient set access_count = access_count + 1, accessed_at = ?4
where tenant_id = ?1 and execution_id = ?2 and var_name = ?3
    and (expires_at is null or expires_at > ?4)
returning var_name, var_type, var_value, source_step, scope, expires_at, created_at, accessed_at,
    access_count
