-- One entry of one tenant.
select catalog_id, path, version, kind, content, layout::text, payload::text, meta::text, created_at, deleted_at
from noetl.catalog
where catalog_id = $1 and tenant_id = $2
