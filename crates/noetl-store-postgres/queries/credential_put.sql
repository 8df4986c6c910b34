-- Adds a credential, or replaces all but id and first time of the one with its name.
insert into noetl.credential (
    id, tenant_id, name, type, data_encrypted, schema, meta, tags, description, created_at,
    updated_at
) values ($1, $2, $3, $4, $5, $6::json, $7::json, $8, $9, now(), now())
on conflict (tenant_id, name) do update set
    type = excluded.type, data_encrypted = excluded.data_encrypted, schema = excluded.schema,
    meta = excluded.meta, tags = excluded.tags, description = excluded.description,
    updated_at = excluded.updated_at
returning id, name, type, data_encrypted, schema::text, meta::text, coalesce(tags, array[]::text[]),
    description, created_at::timestamptz, updated_at::timestamptz
