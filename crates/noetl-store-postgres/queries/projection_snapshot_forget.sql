-- Drops one aggregate's snapshot.
delete from noetl.projection_snapshot
where tenant_id = $1 and organization_id = 'default' and aggregate_type = $2 and aggregate_id = $3
    and body is not null
