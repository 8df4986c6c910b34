-- Removes uses that are longer ago than an age, the earliest first.
delete from noetl.secret_audit a using (
    select audit_id from noetl.secret_audit
    where occurred_at < now() - $1
    order by occurred_at, audit_id limit $2
    for update
) old
where a.audit_id = old.audit_id
