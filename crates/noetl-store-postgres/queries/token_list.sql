-- Tokens of a tenant, oldest first.
select token_id, tenant_id, hash, name, role, created_at, expires_at, revoked_at, pool
from noetl.token
where tenant_id = $1
order by created_at, token_id
