-- What passes between executions, replicas and the world outside. Times are the database's own:
-- leases and what falls due are compared with `now()`, never with a caller's clock. Tables that may
-- exist already gain what they lack; nothing that can be large is rewritten.

-- Who may do what only one may do at a time. A row stays when its lease is given back or over, so
-- that the epoch only ever grows. Names are in byte order.
create table if not exists noetl.leader (
    name text collate "C" primary key,
    holder text,
    epoch bigint not null,
    until timestamptz
) with (fillfactor = 50);

-- How far a reader of a stream has come. A position only ever grows.
create table if not exists noetl.stream_cursor (
    name text primary key,
    position bigint not null,
    updated_at timestamptz not null default now()
) with (fillfactor = 50);

-- Folded state that spares reading a log from its beginning. What we fold is in `body`: text, kept
-- to the byte, because its checksum is of these bytes. `snapshot` is what other programs keep.
create table if not exists noetl.projection_snapshot (
    aggregate_id text not null,
    aggregate_type text not null,
    tenant_id text not null default 'default',
    organization_id text not null default 'default',
    version bigint not null,
    snapshot jsonb,
    checksum text,
    meta json not null default '{}',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (tenant_id, organization_id, aggregate_type, aggregate_id)
);

alter table noetl.projection_snapshot
    add column if not exists body text,
    alter column snapshot drop not null;

-- Timers, and what one execution asks of another; written in the sender's transaction and removed
-- when delivered. A row is ready at `ready_at`: its time at first, then the end of the lease of
-- whoever took it, or the time it was put off to.
create table if not exists noetl.due (
    id bigint primary key,
    tenant_id text not null,
    execution_id bigint not null,
    kind text not null,
    target_id bigint not null,
    due_at timestamptz not null,
    payload json not null,
    attempts integer not null default 0,
    ready_at timestamptz not null
) with (fillfactor = 70);

create index if not exists due_ready on noetl.due (ready_at, id);
create index if not exists due_execution on noetl.due (execution_id, due_at, id);

-- For operators: what executions wait for by themselves.
create or replace view noetl.timer as
select id, tenant_id, execution_id, kind, due_at, ready_at, attempts
from noetl.due
where target_id = execution_id;

-- Committed events on their way to publishers outside, written in the event's transaction when the
-- outbox is on. What we write is in `body`: text, because an event may hold a character that
-- `jsonb` refuses. `payload` is what other programs write.
create table if not exists noetl.outbox (
    outbox_id bigserial primary key,
    execution_id bigint,
    event_id bigint not null,
    subject text,
    payload jsonb,
    payload_bytes bytea,
    payload_codec text not null default 'arrow-feather',
    status text not null default 'PENDING',
    attempts integer not null default 0,
    available_at timestamptz not null default now(),
    locked_at timestamptz,
    published_at timestamptz,
    last_error text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    unique (execution_id, event_id)
) with (fillfactor = 70);

alter table noetl.outbox
    add column if not exists tenant_id text not null default 'default',
    add column if not exists body text,
    alter column payload drop not null;

-- What is not published, in the order it is claimed in.
create index if not exists outbox_open on noetl.outbox (outbox_id) where status <> 'PUBLISHED';
create index if not exists outbox_published on noetl.outbox (published_at)
    where status = 'PUBLISHED';

-- Programs that said they are there.
create table if not exists noetl.runtime (
    runtime_id bigint primary key,
    name text not null,
    kind text not null,
    uri text,
    status text not null,
    labels json,
    capabilities json,
    capacity integer,
    runtime json,
    heartbeat timestamptz not null default now(),
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
) with (fillfactor = 70);

alter table noetl.runtime add column if not exists tenant_id text not null default 'default';

-- A few rows at most; one that was never heard of counts as heard of now.
update noetl.runtime set
    heartbeat = coalesce(heartbeat, now()), created_at = coalesce(created_at, now()),
    updated_at = coalesce(updated_at, now())
where heartbeat is null or created_at is null or updated_at is null;

create unique index if not exists runtime_name on noetl.runtime (tenant_id, kind, name);
create index if not exists runtime_heartbeat on noetl.runtime (heartbeat);

-- Subscriptions with their current state, so that no retention of events can lose it.
create table if not exists noetl.subscription (
    id bigint primary key,
    tenant_id text not null,
    path text not null,
    catalog_id bigint not null,
    state text not null,
    last_event_type text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

-- A path has at most one subscription that is not deactivated.
create unique index if not exists subscription_live on noetl.subscription (tenant_id, path)
    where state <> 'DEACTIVATED';
create index if not exists subscription_tenant on noetl.subscription (tenant_id, id);

-- The messages subscriptions have seen, and the execution each became. The scope 0 is shared by
-- callers without a subscription, so the tenant is part of the key.
create table if not exists noetl.subscription_dedup (
    subscription_id bigint not null,
    dedup_key text not null,
    execution_id bigint not null,
    seen_at timestamptz not null default now()
);

alter table noetl.subscription_dedup
    add column if not exists tenant_id text not null default 'default';

create unique index if not exists subscription_dedup_message
    on noetl.subscription_dedup (tenant_id, subscription_id, dedup_key);
create index if not exists subscription_dedup_seen on noetl.subscription_dedup (seen_at);

-- When a playbook is to be started next. The execution of a run is fixed before it is started, so
-- that starting it again is a repeat.
create table if not exists noetl.schedule (
    schedule_id bigint not null,
    playbook_path text not null,
    playbook_version bigint,
    cron text,
    interval_seconds bigint,
    enabled boolean not null default true,
    timezone text,
    next_run_at timestamptz,
    last_run_at timestamptz,
    last_status text,
    input_payload json,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    meta json
);

alter table noetl.schedule
    add column if not exists tenant_id text not null default 'default',
    add column if not exists run_execution_id bigint;

update noetl.schedule set
    enabled = coalesce(enabled, false), created_at = coalesce(created_at, now()),
    updated_at = coalesce(updated_at, now())
where enabled is null or created_at is null or updated_at is null;

create unique index if not exists schedule_key on noetl.schedule (schedule_id);
-- What is ready comes out of it in order.
create index if not exists schedule_next on noetl.schedule (next_run_at, schedule_id)
    where enabled and next_run_at is not null;
create index if not exists schedule_tenant on noetl.schedule (tenant_id, schedule_id);

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
            ('noetl.runtime'::regclass, array['kind', 'name']),
            ('noetl.subscription_dedup'::regclass, array['dedup_key', 'subscription_id'])
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

    -- Numbers of schedules were narrower, or text. The table is small.
    for old in
        select a.attname as name
        from pg_attribute a
        where a.attrelid = 'noetl.schedule'::regclass
            and a.attname in ('playbook_version', 'interval_seconds')
            and a.atttypid <> 'bigint'::regtype
    loop
        execute format(
            'alter table noetl.schedule alter column %1$I type bigint '
            'using case when %1$I::text ~ ''^[0-9]{1,18}$'' then %1$I::text::bigint end',
            old.name
        );
    end loop;

    -- States that make no sense cannot be written. Rows that are there already are not looked at:
    -- they may be many, and some were left half-way.
    for old in
        select * from (values
            ('leader', 'leader_has_both_or_neither', '(holder is null) = (until is null)'),
            ('leader', 'leader_epoch_counts', 'epoch > 0'),
            ('due', 'due_attempts_count', 'attempts >= 0'),
            (
                'outbox', 'outbox_status_is_known',
                $c$status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')$c$
            ),
            (
                'outbox', 'outbox_status_is_sound',
                $c$(status <> 'IN_FLIGHT' or locked_at is not null)
                    and (status = 'PUBLISHED') = (published_at is not null)$c$
            ),
            ('outbox', 'outbox_has_content', 'num_nonnulls(body, payload, payload_bytes) > 0'),
            (
                'projection_snapshot', 'projection_snapshot_has_content',
                'num_nonnulls(body, snapshot) > 0 and (body is null or checksum is not null)'
            ),
            (
                'runtime', 'runtime_kind_is_known',
                $c$kind in ('worker_pool', 'server_api', 'broker')$c$
            ),
            (
                'subscription', 'subscription_state_is_known',
                $c$state in ('REGISTERED', 'ACTIVE', 'PAUSED', 'DRAINING', 'DEACTIVATED')$c$
            ),
            (
                'schedule', 'schedule_runs_when_due',
                'run_execution_id is null or next_run_at is not null'
            )
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
