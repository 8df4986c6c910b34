-- Secrets of the installation itself, encrypted like credentials: written once, never replaced but
-- by the same value under another encryption key.
create table sealed_setting (
    name text primary key,
    data_encrypted text not null,
    created_at integer not null
) strict, without rowid;
