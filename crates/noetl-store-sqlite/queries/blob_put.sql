-- Notes content, or that it was written again: at a later time, whatever the clock says.
insert into blob (digest, bytes, media_type, written_at) values (?1, ?2, ?3, ?4)
on conflict (digest) do update set written_at = max(excluded.written_at, written_at + 1)
