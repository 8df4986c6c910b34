-- One path's given version, or its highest.
select catalog_id, path, version, kind, content, layout::text, payload::text, meta::text, created_at
from noetl.catalog
where tenant_id = $1 and path = $2 and ($3::integer is null or version = $3)
order by version desc limit 1
