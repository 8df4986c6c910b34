-- Modules with a common beginning and after another place, in the order of the paths' bytes and of
-- versions. The first condition is where an index can begin.
select path, version,
    case when digest ~ '^[0-9a-f]{64}$' then digest else encode(sha256(bytes), 'hex') end,
    coalesce(media_type, ''), octet_length(bytes)::bigint, created_at::timestamptz
from noetl.plugin_module
where path collate "C" >= $1 and path ^@ $1
    and ($2::text is null or (path collate "C", version) > ($2, $3))
order by path collate "C", version limit $4
