-- Makes room in a schema that another NoETL has made. Nothing here rewrites the log: columns are
-- added with constant defaults, constraints are not checked against old rows, and the next
-- migrations find their tables as they want them. On a new or known schema it changes nothing.
do $$
declare
    found record;
begin
    if to_regclass('noetl.event') is null or exists (
        select from information_schema.columns
        where table_schema = 'noetl' and table_name = 'event' and column_name = 'origin'
    ) then
        return;
    end if;

    -- Rows that name a catalog entry nobody has any more are kept as they are, and kinds are ours
    -- to choose.
    for found in
        select c.conrelid::regclass as on_table, c.conname as name
        from pg_constraint c
        where c.contype = 'f' and c.conparentid = 0
            and c.conrelid in (
                to_regclass('noetl.event'), to_regclass('noetl.command'),
                to_regclass('noetl.catalog'), to_regclass('noetl.keychain')
            )
    loop
        execute format('alter table %s drop constraint %I', found.on_table, found.name);
    end loop;

    -- The log.
    alter table noetl.event alter column catalog_id drop not null;
    alter table noetl.event
        add column if not exists parent_event_id bigint,
        add column if not exists parent_execution_id bigint,
        add column if not exists node_id varchar,
        add column if not exists duration double precision,
        add column if not exists prev_event_id bigint,
        add column if not exists command_id bigint,
        add column if not exists worker_id varchar,
        add column if not exists tenant_id text not null default 'default',
        add column if not exists organization_id text not null default 'default',
        add column if not exists idempotency_key text,
        add column if not exists seq bigint,
        add column if not exists lane smallint,
        add column if not exists position bigint,
        add column if not exists origin text not null default 'imported';
    alter table noetl.event add constraint chk_event_origin check (
        origin = 'imported'
        or (
            origin in ('decided', 'reported')
            and seq > 0 and lane is not null and position > 0 and event_type is not null
        )
    ) not valid;

    -- The commands. Those without `issued_seq` are not ours to drive.
    if to_regclass('noetl.command') is not null then
        alter table noetl.command alter column catalog_id drop not null;
        alter table noetl.command add column if not exists issued_seq bigint;
        alter table noetl.command add constraint command_is_sound check (
            issued_seq is null
            or case status
                when 'PENDING' then worker_id is null and completed_at is null
                when 'CLAIMED' then worker_id is not null and completed_at is null
                when 'RUNNING' then worker_id is not null and completed_at is null
                when 'COMPLETED' then completed_at is not null
                when 'FAILED' then completed_at is not null
                when 'CANCELLED' then completed_at is not null
                when 'EXPIRED' then completed_at is not null
                else false
            end
        ) not valid;
    end if;

    -- The list of executions was a projection that could be rebuilt; ours is not. The old one stays
    -- beside it.
    if to_regclass('noetl.execution') is not null then
        alter table noetl.execution rename to execution_before_adoption;
        for found in
            select i.indexrelid::regclass::text as name, c.relname
            from pg_index i
            join pg_class c on c.oid = i.indexrelid
            where i.indrelid = 'noetl.execution_before_adoption'::regclass
        loop
            execute format('alter index %s rename to %I', found.name, left(found.relname, 50) || '_old');
        end loop;
    end if;

    -- The catalog: versions past 32 767, and paths by tenant.
    if to_regclass('noetl.catalog') is not null then
        alter table noetl.catalog
            alter column version drop default,
            alter column version type integer,
            add column if not exists tenant_id text not null default 'default';
        for found in
            select c.conname as name
            from pg_constraint c
            where c.conrelid = 'noetl.catalog'::regclass and c.contype = 'u'
        loop
            execute format('alter table noetl.catalog drop constraint %I', found.name);
        end loop;
    end if;

    -- What remains to be done row by row, and how far it is.
    create table noetl.adoption (
        id integer primary key check (id = 1),
        after_execution bigint not null,
        is_done boolean not null
    );
    insert into noetl.adoption values (1, -9223372036854775808, false);
end
$$;
