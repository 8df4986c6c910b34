-- One tenant's credential with a name.
select id, name, type, data_encrypted, schema::text, meta::text, coalesce(tags, array[]::text[]),
    description, created_at::timestamptz, updated_at::timestamptz
from noetl.credential
where tenant_id = $1 and name = $2
