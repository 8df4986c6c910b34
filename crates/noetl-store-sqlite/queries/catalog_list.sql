-- Entries of a tenant, newest first, at equal times the larger id first.
select id, path, version, kind, content, layout, payload, meta, created_at
from catalog
where tenant_id = ?1 and (?2 is null or kind = ?2)
order by created_at desc, id desc
