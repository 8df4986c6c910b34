-- Makes room for the bytes of content, unless there are as many already.
insert into blob_data (digest, data) values (?1, zeroblob(?2))
on conflict (digest) do update set data = excluded.data where length(data) <> ?2
