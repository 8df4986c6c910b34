-- All versions of a path, deleted ones too, highest first. What is in them is not read.
select id, path, version, kind, created_at, deleted_at
from catalog
where tenant_id = ?1 and path = ?2
order by version desc
