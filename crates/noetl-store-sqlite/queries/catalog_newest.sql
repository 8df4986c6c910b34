-- The highest version that is not deleted of every path of a tenant where it is of one kind, by path. What is in the
-- documents is not read.
select c.id, c.path, c.version
from (
    select path, max(version) as version from catalog
    where tenant_id = ?1 and deleted_at is null
    group by path
) newest
join catalog c on c.tenant_id = ?1 and c.path = newest.path and c.version = newest.version
where c.kind = ?2
order by c.path
