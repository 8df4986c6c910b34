-- One tenant's credential with a name.
select id, name, type, data_encrypted, schema, meta, tags, description, created_at, updated_at
from credential
where tenant_id = ?1 and name = ?2
