-- Entries of a tenant that are not deleted, newest first, at equal times the larger id first.
select id, path, version, kind, content, layout, payload, meta, created_at, deleted_at
from catalog
where tenant_id = ?1 and (?2 is null or kind = ?2)
    and deleted_at is null
order by created_at desc, id desc
