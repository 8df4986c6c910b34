-- One credential of one tenant.
select id, name, type, data_encrypted, schema, meta, tags, description, created_at, updated_at
from credential
where id = ?1 and tenant_id = ?2
