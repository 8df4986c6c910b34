-- Keeps a module in the place of any with its path and version.
insert or replace into plugin_module (
    path, version, digest, media_type, size, created_at, bytes
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
