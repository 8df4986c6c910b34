-- Keeps an entry in the place of any with its cache key.
insert or replace into keychain (
    tenant_id, cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, execution_id,
    parent_execution_id, data_encrypted, schema, expires_at, auto_renew, renew_config, created_at,
    accessed_at, access_count
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, null, 0)
