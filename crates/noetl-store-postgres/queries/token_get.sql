-- One token.
select token_id, tenant_id, hash, name, role, created_at, expires_at, revoked_at, pool
from noetl.token
where token_id = $1
