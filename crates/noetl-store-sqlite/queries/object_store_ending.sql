-- Objects with a common end, in the order of keys. There is no index by ends: an embedded store
-- has few objects, and only their keys are looked at.
select object_key, digest, media_type, size, created_at
from object_store
where substr(object_key, length(object_key) - length(?1) + 1) = ?1 and length(object_key) >= length(?1)
order by object_key limit ?2
