-- Keeps a snapshot; changes no row when there is one of ours as new or newer.
insert into noetl.projection_snapshot as s (
    tenant_id, aggregate_type, aggregate_id, version, body, checksum, meta, created_at, updated_at
) values ($1, $2, $3, $4, $5, $6, $7::json, now(), now())
on conflict (tenant_id, organization_id, aggregate_type, aggregate_id) do update set
    version = excluded.version, body = excluded.body, snapshot = null,
    checksum = excluded.checksum, meta = excluded.meta, updated_at = excluded.updated_at
where s.body is null or excluded.version > s.version
