-- Keeps an object in the place of any with its key.
insert or replace into object_store (object_key, digest, media_type, size, created_at, bytes)
values (?1, ?2, ?3, ?4, ?5, ?6)
