-- Adds a result, or changes no row when its id is taken.
insert into result_store (
    result_id, tenant_id, execution_id, name, scope, source_step, data, bytes, sha256, media_type,
    created_at, expires_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
on conflict (result_id) do nothing
