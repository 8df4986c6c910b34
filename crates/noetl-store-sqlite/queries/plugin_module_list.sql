-- Modules from a path on and after another place, in the order of paths and versions. Those with a
-- common beginning are next to each other; the reader stops where it ends.
select path, version, digest, media_type, size, created_at
from plugin_module
where path >= ?1 and (?2 is null or (path, version) > (?2, ?3))
order by path, version
