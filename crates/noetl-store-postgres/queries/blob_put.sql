-- Keeps content, or notes that it was written again: at a later time, whatever the clock says. The
-- bytes that are there are replaced only when they differ, which is damage.
insert into noetl.blob as b (digest, bytes, media_type, written_at, data)
values ($1, $2, $3, now(), $4)
on conflict (digest) do update set
    written_at = greatest(now(), b.written_at + interval '1 microsecond'),
    bytes = excluded.bytes,
    data = case when b.data = excluded.data then b.data else excluded.data end
