-- What is encrypted of keychain entries of all tenants after one, by the bytes of tenant and key.
select tenant_id, cache_key, keychain_name, credential_type, data_encrypted from noetl.keychain
where $1::text is null or tenant_id collate "C" > $1
    or (tenant_id = $1 and cache_key collate "C" > $2)
order by tenant_id collate "C", cache_key collate "C" limit $3
