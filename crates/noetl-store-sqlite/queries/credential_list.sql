-- Credentials of a tenant in the order of their names.
select id, name, type, data_encrypted, schema, meta, tags, description, created_at, updated_at
from credential
where tenant_id = ?1
    and (?2 is null or type = ?2)
    and (
        ?3 is null
        or path_contains(name, ?3)
        or path_contains(coalesce(description, ''), ?3)
    )
order by name
