-- One aggregate's snapshot; one that another program keeps is none.
select version, body, checksum, meta::text from noetl.projection_snapshot
where tenant_id = $1 and organization_id = 'default' and aggregate_type = $2 and aggregate_id = $3
    and body is not null
