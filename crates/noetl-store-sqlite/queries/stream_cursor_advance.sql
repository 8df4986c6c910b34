-- Moves a cursor forward; changes no row when it is there or further on.
insert into stream_cursor (name, position, updated_at) values (?1, ?2, ?3)
on conflict (name) do update set position = excluded.position, updated_at = excluded.updated_at
where excluded.position > position
