-- Adds the next version of a path and returns its number. The one writer makes it the next.
insert into catalog (
    id, tenant_id, path, version, kind, content, layout, payload, meta, created_at
)
select ?1, ?2, ?3, coalesce(max(version), 0) + 1, ?4, ?5, ?6, ?7, ?8, ?9
from catalog
where tenant_id = ?2 and path = ?3
returning version
