-- What is kept beside the executions: secrets, variables, results, objects, content. Encrypted
-- texts are opaque here. A row with `expires_at` has expired from that instant on, by the
-- database's clock; one without never expires. Tables that may exist already gain what they lack;
-- nothing that can be large is rewritten.

create table if not exists noetl.credential (
    id bigint primary key,
    name text not null,
    type text not null,
    data_encrypted text not null,
    schema json,
    meta json,
    tags text[],
    description text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

alter table noetl.credential add column if not exists tenant_id text not null default 'default';

create unique index if not exists credential_named on noetl.credential (tenant_id, name);

create table if not exists noetl.keychain (
    cache_key text not null,
    keychain_name text not null,
    catalog_id bigint,
    credential_type text not null,
    cache_type text not null,
    scope_type text not null,
    execution_id bigint,
    parent_execution_id bigint,
    data_encrypted text not null,
    schema json,
    expires_at timestamptz,
    created_at timestamptz not null default now(),
    accessed_at timestamptz,
    access_count integer,
    auto_renew boolean,
    renew_config json
);

alter table noetl.keychain
    add column if not exists tenant_id text not null default 'default',
    alter column expires_at drop not null;

create unique index if not exists keychain_entry on noetl.keychain (tenant_id, cache_key);
create index if not exists keychain_catalog on noetl.keychain (tenant_id, catalog_id);
create index if not exists keychain_execution on noetl.keychain (tenant_id, execution_id)
    where execution_id is not null;
create index if not exists keychain_expiry on noetl.keychain (expires_at)
    where expires_at is not null;

create table if not exists noetl.secret_audit (
    audit_id bigint primary key,
    occurred_at timestamptz not null default now(),
    credential text not null,
    operation text not null,
    outcome text not null,
    worker_id text,
    execution_id bigint,
    parent_execution_id bigint,
    server_region text,
    broker_region text,
    kek_version text,
    notes text
);

alter table noetl.secret_audit add column if not exists tenant_id text not null default 'default';

-- The first serves the list in its order, the second the purge by age.
create index if not exists secret_audit_list
    on noetl.secret_audit (tenant_id, occurred_at, audit_id);
create index if not exists secret_audit_age on noetl.secret_audit (occurred_at, audit_id);

-- What we write is in `body`: text, because a value may hold a character that `jsonb` refuses.
-- `var_value` is what other programs write.
create table if not exists noetl.transient (
    execution_id bigint not null,
    var_name text collate "C" not null,
    var_type text not null,
    var_value jsonb,
    source_step text,
    created_at timestamptz not null default now(),
    accessed_at timestamptz,
    access_count integer,
    expires_at timestamptz,
    scope text
);

alter table noetl.transient
    add column if not exists tenant_id text not null default 'default',
    add column if not exists body text,
    alter column var_value drop not null;

create unique index if not exists transient_variable
    on noetl.transient (tenant_id, execution_id, var_name);
create index if not exists transient_expiry on noetl.transient (expires_at)
    where expires_at is not null;

-- The same for `body` and `data`.
create table if not exists noetl.result_store (
    result_id bigint primary key,
    execution_id bigint not null,
    name text not null,
    scope text,
    source_step text,
    data jsonb,
    bytes bigint,
    sha256 text,
    media_type text default 'application/json',
    created_at timestamptz not null default now(),
    expires_at timestamptz
);

alter table noetl.result_store
    add column if not exists tenant_id text not null default 'default',
    add column if not exists body text,
    alter column data drop not null;

create index if not exists result_store_execution
    on noetl.result_store (tenant_id, execution_id, result_id);
create index if not exists result_store_expiry on noetl.result_store (expires_at, result_id)
    where expires_at is not null;

-- Objects and modules are no tenant's; they are listed in byte order.
create table if not exists noetl.object_store (
    object_key text collate "C" primary key,
    digest text not null,
    media_type text not null,
    bytes bytea not null,
    created_at timestamptz not null default now()
);

create table if not exists noetl.plugin_module (
    path text collate "C" not null,
    version integer not null,
    digest text not null,
    media_type text not null,
    bytes bytea not null,
    created_at timestamptz not null default now(),
    primary key (path, version)
);

-- Content by its SHA-256. The bytes are stored apart from the row, so a walk over all content reads
-- small rows.
create table if not exists noetl.blob (
    digest bytea primary key,
    bytes bigint not null,
    media_type text not null,
    written_at timestamptz not null,
    data bytea not null
);

-- Which execution refers to which content. The content itself may be in another place.
create table if not exists noetl.blob_ref (
    execution_id bigint not null,
    digest bytea not null,
    tenant_id text not null,
    primary key (execution_id, digest)
);

create index if not exists blob_ref_digest on noetl.blob_ref (digest);

-- What is left of tables that were made by others.
do $$
declare
    old record;
begin
    -- Keys from before there were tenants would keep two tenants from using one name.
    for old in
        select i.indrelid::regclass as of, i.indexrelid::regclass as key, c.conname as name
        from pg_index i
        left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u')
        join (values
            ('noetl.credential'::regclass, array['name']),
            ('noetl.keychain'::regclass, array['cache_key']),
            ('noetl.transient'::regclass, array['execution_id', 'var_name'])
        ) without_tenant (of, columns) on without_tenant.of = i.indrelid
        where i.indisunique and without_tenant.columns = array(
            select a.attname::text
            from pg_attribute a
            where a.attrelid = i.indrelid and a.attnum = any (i.indkey::smallint[])
            order by a.attname::text collate "C"
        )
    loop
        if old.name is null then
            execute format('drop index %s', old.key);
        else
            execute format('alter table %s drop constraint %I', old.of, old.name);
        end if;
    end loop;

    -- States that make no sense cannot be written. Rows that are there already are not looked at:
    -- they may be many.
    for old in
        select * from (values
            ('keychain', 'keychain_cache_is_known', $c$cache_type in ('secret', 'token')$c$),
            (
                'keychain', 'keychain_scope_is_known',
                $c$scope_type in ('local', 'global', 'shared')$c$
            ),
            (
                'transient', 'transient_type_is_known',
                $c$var_type in ('user_defined', 'step_result', 'computed', 'iterator_state')$c$
            ),
            ('transient', 'transient_has_content', 'num_nonnulls(body, var_value) > 0'),
            ('result_store', 'result_store_has_content', 'num_nonnulls(body, data) > 0'),
            ('blob', 'blob_digest_is_sha256', 'octet_length(digest) = 32'),
            ('blob_ref', 'blob_ref_digest_is_sha256', 'octet_length(digest) = 32')
        ) wanted (of, name, condition)
        where not exists (
            select from pg_constraint c
            where c.conrelid = format('noetl.%I', wanted.of)::regclass and c.conname = wanted.name
        )
    loop
        execute format(
            'alter table noetl.%I add constraint %I check (%s) not valid',
            old.of, old.name, old.condition
        );
    end loop;
end
$$;
