-- Keeps an entry in the place of any with its cache key.
insert into noetl.keychain (
    tenant_id, cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type,
    execution_id, parent_execution_id, data_encrypted, schema, expires_at, auto_renew,
    renew_config, created_at, accessed_at, access_count
) values (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, $14::json, now(), null, 0
)
on conflict (tenant_id, cache_key) do update set
    keychain_name = excluded.keychain_name, catalog_id = excluded.catalog_id,
    credential_type = excluded.credential_type, cache_type = excluded.cache_type,
    scope_type = excluded.scope_type, execution_id = excluded.execution_id,
    parent_execution_id = excluded.parent_execution_id, data_encrypted = excluded.data_encrypted,
    schema = excluded.schema, expires_at = excluded.expires_at, auto_renew = excluded.auto_renew,
    renew_config = excluded.renew_config, created_at = excluded.created_at, accessed_at = null,
    access_count = 0
returning cache_key, keychain_name, coalesce(catalog_id, 0), credential_type, cache_type, scope_type,
    execution_id, parent_execution_id, data_encrypted, schema::text, expires_at::timestamptz,
    coalesce(auto_renew, false), renew_config::text, created_at::timestamptz,
    accessed_at::timestamptz, coalesce(access_count, 0)::bigint
