-- Objects with a common beginning and after a key, in the order of the keys' bytes. The first
-- condition is where an index can begin.
select object_key,
    case when digest ~ '^[0-9a-f]{64}$' then digest else encode(sha256(bytes), 'hex') end,
    coalesce(media_type, ''), octet_length(bytes)::bigint, created_at::timestamptz
from noetl.object_store
where object_key collate "C" >= $1 and object_key ^@ $1
    and ($2::text is null or object_key collate "C" > $2)
order by object_key collate "C" limit $3
