-- One path's given version, or its highest.
select path, version, digest, media_type, size, created_at, bytes
from plugin_module
where path = ?1 and (?2 is null or version = ?2)
order by version desc limit 1
