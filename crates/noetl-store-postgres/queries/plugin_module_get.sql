-- One path's given version, or its highest. Other programs may write digests in another form.
select path, version,
    case when digest ~ '^[0-9a-f]{64}$' then digest else encode(sha256(bytes), 'hex') end,
    coalesce(media_type, ''), octet_length(bytes)::bigint, created_at::timestamptz, bytes
from noetl.plugin_module
where path = $1 and ($2::integer is null or version = $2)
order by version desc limit 1
