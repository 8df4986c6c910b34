-- One object. Other programs may write digests in another form.
select object_key,
    case when digest ~ '^[0-9a-f]{64}$' then digest else encode(sha256(bytes), 'hex') end,
    coalesce(media_type, ''), octet_length(bytes)::bigint, created_at::timestamptz, bytes
from noetl.object_store
where object_key = $1
