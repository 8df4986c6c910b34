-- One path's given version, or its highest.
select id, path, version, kind, content, layout, payload, meta, created_at
from catalog
where tenant_id = ?1 and path = ?2 and (?3 is null or version = ?3)
order by version desc limit 1
