-- Grants of a tenant, oldest first.
select grant_id, tenant_id, kind, target, subject, prefix, created_at
from noetl.access_grant
where tenant_id = $1
order by created_at, grant_id
