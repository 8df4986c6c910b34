-- Adds a token.
insert into noetl.token (token_id, tenant_id, hash, name, role, expires_at, pool)
values ($1, $2, $3, $4, $5, $6, $7)
returning token_id, tenant_id, hash, name, role, created_at, expires_at, revoked_at, pool
