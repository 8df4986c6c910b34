-- Adds a token.
insert into token (token_id, tenant_id, hash, name, role, created_at, expires_at, pool)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
returning token_id, tenant_id, hash, name, role, created_at, expires_at, revoked_at, pool
