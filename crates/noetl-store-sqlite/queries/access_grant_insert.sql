-- Adds a grant.
insert into access_grant (grant_id, tenant_id, kind, target, subject, prefix, created_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
returning grant_id, tenant_id, kind, target, subject, prefix, created_at
