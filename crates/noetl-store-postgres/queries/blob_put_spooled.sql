-- Keeps content that came in parts, as blob_put.sql does with content that came whole.
insert into noetl.blob as b (digest, bytes, media_type, written_at, data)
select $1, $2, $3, now(), data from noetl_spool
on conflict (digest) do update set
    written_at = greatest(now(), b.written_at + interval '1 microsecond'),
    bytes = excluded.bytes,
    data = case when b.data = excluded.data then b.data else excluded.data end
