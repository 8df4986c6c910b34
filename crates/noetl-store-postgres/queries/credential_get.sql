-- One credential of one tenant.
select id, name, type, data_encrypted, schema::text, meta::text, coalesce(tags, array[]::text[]),
    description, created_at::timestamptz, updated_at::timestamptz
from noetl.credential
where id = $1 and tenant_id = $2
