-- Removes expired variables, the earliest first.
delete from transient where rowid in (
    select rowid from transient indexed by transient_expiry
    where expires_at <= ?1
    order by expires_at limit ?2
)
