-- What is encrypted of keychain entries of all tenants after one, by tenant and key.
select tenant_id, cache_key, keychain_name, credential_type, data_encrypted from keychain
where ?1 is null or (tenant_id, cache_key) > (?1, ?2)
order by tenant_id, cache_key limit ?3
