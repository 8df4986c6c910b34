-- Adds a token if there is none.
insert into token (token_id, tenant_id, hash, name, role, created_at, expires_at, pool)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
where not exists (select 1 from token)
returning token_id, tenant_id, hash, name, role, created_at, expires_at, revoked_at, pool
