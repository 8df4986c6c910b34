-- One entry of one tenant, expired or not.
select cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, execution_id,
    parent_execution_id, data_encrypted, schema, expires_at, auto_renew, renew_config, created_at,
    accessed_at, access_count
from keychain
where tenant_id = ?1 and cache_key = ?2
