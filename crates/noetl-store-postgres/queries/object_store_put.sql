-- Keeps an object in the place of any with its key.
insert into noetl.object_store (object_key, digest, media_type, bytes, created_at)
values ($1, $2, $3, $4, now())
on conflict (object_key) do update set
    digest = excluded.digest, media_type = excluded.media_type, bytes = excluded.bytes,
    created_at = excluded.created_at
returning object_key, digest, media_type, octet_length(bytes)::bigint, created_at::timestamptz
