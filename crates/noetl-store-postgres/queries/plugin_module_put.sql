-- Keeps a module in the place of any with its path and version.
insert into noetl.plugin_module (path, version, digest, media_type, bytes, created_at)
values ($1, $2, $3, $4, $5, now())
on conflict (path, version) do update set
    digest = excluded.digest, media_type = excluded.media_type, bytes = excluded.bytes,
    created_at = excluded.created_at
returning path, version, digest, media_type, octet_length(bytes)::bigint, created_at::timestamptz
