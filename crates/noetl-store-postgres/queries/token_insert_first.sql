-- Adds a token if there is none.
insert into noetl.token (token_id, tenant_id, hash, name, role, expires_at, pool, is_first)
select $1, $2, $3, $4, $5, $6, $7, true
where not exists (select from noetl.token)
on conflict do nothing
returning token_id, tenant_id, hash, name, role, created_at, expires_at, revoked_at, pool
