-- One entry of one tenant, expired or not.
select cache_key, keychain_name, coalesce(catalog_id, 0), credential_type, cache_type, scope_type,
    execution_id, parent_execution_id, data_encrypted, schema::text, expires_at::timestamptz,
    coalesce(auto_renew, false), renew_config::text, created_at::timestamptz,
    accessed_at::timestamptz, coalesce(access_count, 0)::bigint
from noetl.keychain
where tenant_id = $1 and cache_key = $2
