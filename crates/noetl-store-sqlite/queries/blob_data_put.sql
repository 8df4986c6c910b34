-- Keeps the bytes of content. What is there is written only when it differs, which is damage.
insert into blob_data (digest, data) values (?1, ?2)
on conflict (digest) do update set data = excluded.data where data <> excluded.data
