-- Credentials of a tenant in the order of their names' bytes.
select id, name, type, data_encrypted, schema::text, meta::text, coalesce(tags, array[]::text[]),
    description, created_at::timestamptz, updated_at::timestamptz
from noetl.credential
where tenant_id = $1 and ($2::text is null or type = $2)
order by name collate "C"
