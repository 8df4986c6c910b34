-- Objects with a common end, in the order of the keys' bytes. The first condition is where an index
-- can begin.
select object_key,
    case when digest ~ '^[0-9a-f]{64}$' then digest else encode(sha256(bytes), 'hex') end,
    coalesce(media_type, ''), octet_length(bytes)::bigint, created_at::timestamptz
from noetl.object_store
where reverse(object_key) collate "C" >= reverse($1) and reverse(object_key) ^@ reverse($1)
order by object_key collate "C" limit $2
