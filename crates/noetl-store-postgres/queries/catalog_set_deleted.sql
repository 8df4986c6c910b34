-- Deletes versions of a path that are not, or restores those that are.
with changed as (
    update noetl.catalog
    set deleted_at = $4
    where tenant_id = $1 and path = $2 and ($3::integer is null or version = $3)
        and (deleted_at is null) <> ($4::timestamptz is null)
    returning catalog_id, path, version, kind, created_at, deleted_at
)
select catalog_id, path, version, kind, created_at, deleted_at from changed order by version desc
