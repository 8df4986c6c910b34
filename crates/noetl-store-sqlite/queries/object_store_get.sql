-- One object.
select object_key, digest, media_type, size, created_at, bytes
from object_store
where object_key = ?1
