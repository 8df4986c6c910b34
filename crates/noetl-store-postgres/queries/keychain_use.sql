-- Counts a use of an entry that has not expired, and returns it as it is after that.
update noetl.keychain
set access_count = least(coalesce(access_count, 0), 2147483646) + 1, accessed_at = now()
where tenant_id = $1 and cache_key = $2 and (expires_at is null or expires_at > now())
returning cache_key, keychain_name, coalesce(catalog_id, 0), credential_type, cache_type, scope_type,
    execution_id, parent_execution_id, data_encrypted, schema::text, expires_at::timestamptz,
    coalesce(auto_renew, false), renew_config::text, created_at::timestamptz,
    accessed_at::timestamptz, coalesce(access_count, 0)::bigint
