-- Removes expired entries, the earliest first.
delete from keychain where rowid in (
    select rowid from keychain indexed by keychain_expiry
    where expires_at <= ?1
    order by expires_at, tenant_id, cache_key limit ?2
)
