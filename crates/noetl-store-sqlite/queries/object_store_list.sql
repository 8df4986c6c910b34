-- Objects from a key on and after another, in the order of keys. Those with a common beginning are
-- next to each other; the reader stops where it ends.
select object_key, digest, media_type, size, created_at
from object_store
where object_key >= ?1 and (?2 is null or object_key > ?2)
order by object_key
