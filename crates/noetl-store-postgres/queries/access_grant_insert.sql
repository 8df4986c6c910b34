-- Adds a grant.
insert into noetl.access_grant (grant_id, tenant_id, kind, target, subject, prefix)
values ($1, $2, $3, $4, $5, $6)
returning grant_id, tenant_id, kind, target, subject, prefix, created_at
