-- Adds a setting unless there is one of its name; returns the one that is there.
insert into sealed_setting (name, data_encrypted, created_at) values (?1, ?2, ?3)
on conflict (name) do update set name = excluded.name
returning data_encrypted
