-- Keeps a variable in the place of any with its name.
insert or replace into transient (
    tenant_id, execution_id, var_name, var_type, var_value, source_step, scope, expires_at,
    created_at, accessed_at, access_count
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, null, 0)
