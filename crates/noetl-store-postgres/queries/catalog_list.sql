-- Entries of a tenant that are not deleted, newest first, at equal times the larger id first.
select catalog_id, path, version, kind, content, layout::text, payload::text, meta::text, created_at, deleted_at
from noetl.catalog
where tenant_id = $1 and ($2::text is null or kind = $2)
    and deleted_at is null
order by created_at desc, catalog_id desc
