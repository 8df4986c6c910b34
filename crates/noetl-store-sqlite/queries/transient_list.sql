-- Variables of an execution that have not expired, in the order of their names.
select var_name, var_type, var_value, source_step, scope, expires_at, created_at, accessed_at,
    access_count
from transient
where tenant_id = ?1 and execution_id = ?2 and (expires_at is null or expires_at > ?3)
order by var_name
