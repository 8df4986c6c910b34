-- Deletes versions of a path that are not, or restores those that are.
update catalog
set deleted_at = ?4
where tenant_id = ?1 and path = ?2 and (?3 is null or version = ?3)
    and (deleted_at is null) <> (?4 is null)
returning id, path, version, kind, created_at, deleted_at
