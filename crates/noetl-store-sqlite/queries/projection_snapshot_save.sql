-- Keeps a snapshot; changes no row when there is one as new or newer.
insert into projection_snapshot (
    tenant_id, aggregate_type, aggregate_id, version, snapshot, checksum, meta,
    created_at, updated_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
on conflict (tenant_id, organization_id, aggregate_type, aggregate_id) do update set
    version = excluded.version, snapshot = excluded.snapshot, checksum = excluded.checksum,
    meta = excluded.meta, updated_at = excluded.updated_at
where excluded.version > version
