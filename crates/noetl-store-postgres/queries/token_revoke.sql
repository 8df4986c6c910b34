-- Ends a token of a tenant; one that was ended before stays as it was.
update noetl.token
set revoked_at = coalesce(revoked_at, now())
where token_id = $1 and tenant_id = $2
