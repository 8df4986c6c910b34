-- Counts a use of an entry that has not expired, and returns it as it is after that.
update keychain set access_count = access_count + 1, accessed_at = ?3
where tenant_id = ?1 and cache_key = ?2 and (expires_at is null or expires_at > ?3)
returning cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, execution_id,
    parent_execution_id, data_encrypted, schema, expires_at, auto_renew, renew_config, created_at,
    accessed_at, access_count
