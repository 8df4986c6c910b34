-- Adds a setting unless there is one of its name; returns the one that is there.
insert into noetl.sealed_setting (name, data_encrypted) values ($1, $2)
on conflict (name) do update set name = excluded.name
returning data_encrypted
