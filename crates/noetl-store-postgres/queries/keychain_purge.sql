-- Removes expired entries, the earliest first.
delete from noetl.keychain k using (
    select tenant_id, cache_key from noetl.keychain
    where expires_at <= now()
    order by expires_at, tenant_id, cache_key limit $1
    for update
) expired
where k.tenant_id = expired.tenant_id and k.cache_key = expired.cache_key
