-- One aggregate's snapshot.
select version, snapshot, checksum, meta from projection_snapshot
where tenant_id = ?1 and organization_id = 'default' and aggregate_type = ?2 and aggregate_id = ?3
