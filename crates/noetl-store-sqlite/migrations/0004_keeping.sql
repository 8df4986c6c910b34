-- What is kept beside the executions: secrets, variables, results, objects, content.
-- Encrypted texts are opaque here. A row with `expires_at` has expired from that instant on; one
-- without never expires.

create table credential (
    id integer primary key,
    tenant_id text not null,
    name text not null,
    type text not null,
    data_encrypted text not null,
    schema text,
    meta text,
    tags text not null,
    description text,
    created_at integer not null,
    updated_at integer not null,
    unique (tenant_id, name)
) strict;

create table keychain (
    tenant_id text not null,
    cache_key text not null,
    keychain_name text not null,
    catalog_id integer not null,
    credential_type text not null,
    cache_type text not null check (cache_type in ('secret', 'token')),
    scope_type text not null check (scope_type in ('local', 'global', 'shared')),
    execution_id integer,
    parent_execution_id integer,
    data_encrypted text not null,
    schema text,
    expires_at integer,
    auto_renew integer not null check (auto_renew in (0, 1)),
    renew_config text,
    created_at integer not null,
    accessed_at integer,
    access_count integer not null,
    primary key (tenant_id, cache_key)
) strict;

create index keychain_catalog on keychain (tenant_id, catalog_id);
create index keychain_execution on keychain (tenant_id, execution_id)
    where execution_id is not null;
create index keychain_expiry on keychain (expires_at) where expires_at is not null;

create table secret_audit (
    audit_id integer primary key,
    tenant_id text not null,
    occurred_at integer not null,
    credential text not null,
    operation text not null,
    outcome text not null,
    worker_id text,
    execution_id integer,
    parent_execution_id integer,
    server_region text,
    broker_region text,
    kek_version text,
    notes text
) strict;

-- The first serves the list in its order, the second the purge by age.
create index secret_audit_list on secret_audit (tenant_id, occurred_at);
create index secret_audit_age on secret_audit (occurred_at);

create table transient (
    tenant_id text not null,
    execution_id integer not null,
    var_name text not null,
    var_type text not null
        check (var_type in ('user_defined', 'step_result', 'computed', 'iterator_state')),
    var_value text not null,
    source_step text,
    scope text,
    expires_at integer,
    created_at integer not null,
    accessed_at integer,
    access_count integer not null,
    primary key (tenant_id, execution_id, var_name)
) strict;

create index transient_expiry on transient (expires_at) where expires_at is not null;

create table result_store (
    result_id integer primary key,
    tenant_id text not null,
    execution_id integer not null,
    name text not null,
    scope text not null,
    source_step text,
    data text not null,
    bytes integer not null,
    sha256 text not null,
    media_type text not null,
    created_at integer not null,
    expires_at integer
) strict;

-- Ends in the row's id, so a page needs no sort.
create index result_store_execution on result_store (tenant_id, execution_id);
create index result_store_expiry on result_store (expires_at) where expires_at is not null;

-- The bytes come last, so that a list reads the front of a row and never the pages behind it.
create table object_store (
    object_key text primary key,
    digest text not null,
    media_type text not null,
    size integer not null,
    created_at integer not null,
    bytes blob not null
) strict;

create table plugin_module (
    path text not null,
    version integer not null,
    digest text not null,
    media_type text not null,
    size integer not null,
    created_at integer not null,
    bytes blob not null,
    primary key (path, version)
) strict;

-- Content by its SHA-256, and its bytes apart, so that a walk over all content reads small rows.
create table blob (
    digest text primary key,
    bytes integer not null,
    media_type text not null,
    written_at integer not null
) strict, without rowid;

create table blob_data (
    digest text primary key references blob (digest) on delete cascade,
    data blob not null
) strict;

-- Which execution refers to which content. The content itself may be in another place.
create table blob_ref (
    execution_id integer not null,
    digest text not null,
    tenant_id text not null,
    primary key (execution_id, digest)
) strict, without rowid;

create index blob_ref_digest on blob_ref (digest);
