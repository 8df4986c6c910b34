-- One entry of one tenant.
select id, path, version, kind, content, layout, payload, meta, created_at, deleted_at
from catalog
where id = ?1 and tenant_id = ?2
