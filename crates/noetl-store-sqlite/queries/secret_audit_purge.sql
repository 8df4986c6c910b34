-- Removes uses before an instant, the earliest first.
delete from secret_audit where audit_id in (
    select audit_id from secret_audit indexed by secret_audit_age
    where occurred_at < ?1
    order by occurred_at, audit_id limit ?2
)
