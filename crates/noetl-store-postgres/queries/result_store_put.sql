-- Adds a result, or changes no row when its id is taken.
insert into noetl.result_store (
    result_id, tenant_id, execution_id, name, scope, source_step, body, bytes, sha256, media_type,
    expires_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (result_id) do nothing
