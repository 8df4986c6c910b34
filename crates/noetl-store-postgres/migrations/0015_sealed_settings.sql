-- Secrets of the installation itself, encrypted like credentials: written once, never replaced but
-- by the same value under another encryption key.
create table if not exists noetl.sealed_setting (
    name text collate "C" primary key,
    data_encrypted text not null,
    created_at timestamptz not null default now()
);
