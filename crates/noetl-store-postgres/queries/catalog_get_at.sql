-- One path's given version, or its highest, of those that are not deleted.
select catalog_id, path, version, kind, content, layout::text, payload::text, meta::text, created_at, deleted_at
from noetl.catalog
where tenant_id = $1 and path = $2 and ($3::integer is null or version = $3)
    and deleted_at is null
order by version desc limit 1
