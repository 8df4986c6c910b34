-- The shared store: the log, what is derived from it in the same transaction, and the catalog.
-- Columns that other programs and operators read are named and typed as the published schema has
-- them; ours stand at the end. Every statement also holds on a schema that exists already.
--
-- JSON is `json`, not `jsonb`: values come back as they went in, key order and number form
-- included, so an execution folded from its log equals the one that wrote it.

create schema if not exists noetl;

create table if not exists noetl.resource (
    name varchar primary key,
    meta jsonb
);

insert into noetl.resource (name)
values ('playbook'), ('credential'), ('mcp'), ('agent'), ('memory'), ('subscription')
on conflict (name) do nothing;

create table if not exists noetl.catalog (
    catalog_id bigint primary key,
    path text not null,
    version integer not null check (version > 0),
    kind varchar not null,
    content text,
    layout json,
    payload json,
    meta json,
    created_at timestamp not null default (now() at time zone 'utc'),
    credential_id integer,
    tenant_id text not null default 'default'
);

create unique index if not exists catalog_version on noetl.catalog (tenant_id, path, version);
create index if not exists catalog_created on noetl.catalog (tenant_id, created_at, catalog_id);

-- One execution as lists show it. `version` is the number of events in its log and is what an
-- append is checked against. `origin` says whether we drive it or only keep what came from
-- elsewhere; what is imported may be as incomplete as it was found.
create table if not exists noetl.execution (
    execution_id bigint primary key,
    tenant_id text not null default 'default',
    organization_id text not null default 'default',
    catalog_id bigint,
    parent_execution_id bigint,
    status text not null,
    start_time timestamptz,
    updated_at timestamptz,
    end_time timestamptz,
    error text,
    path text,
    path_folded text,
    playbook_version integer,
    start_key bigint,
    version bigint,
    last_event_id bigint,
    terminal_event_id bigint,
    steps_entered bigint,
    steps_completed bigint,
    steps_failed bigint,
    steps_running bigint,
    current_step text,
    origin text not null default 'imported' check (origin in ('own', 'imported')),
    constraint execution_is_whole check (
        origin = 'imported'
        or (
            version > 0 and last_event_id is not null and start_key is not null and catalog_id is not null and path is not null
            and start_time is not null and updated_at is not null
            and status in ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')
            and (status = 'RUNNING') = (end_time is null)
            and (end_time is null) = (terminal_event_id is null)
        )
    )
) with (fillfactor = 70);

create index if not exists execution_started
    on noetl.execution (tenant_id, start_time, execution_id);
create index if not exists execution_status
    on noetl.execution (tenant_id, status, start_time, execution_id);
create index if not exists execution_unfinished
    on noetl.execution (execution_id) where end_time is null and origin = 'own';

-- The log. Its partitions are ranges of execution ids, which are ranges of start times.
create table if not exists noetl.event (
    execution_id bigint not null,
    catalog_id bigint,
    event_id bigint not null,
    parent_event_id bigint,
    parent_execution_id bigint,
    created_at timestamp not null default (now() at time zone 'utc'),
    event_type varchar,
    node_id varchar,
    node_name varchar,
    node_type varchar,
    status varchar,
    duration double precision,
    context json,
    result json,
    meta json,
    prev_event_id bigint,
    command_id bigint,
    stage_id bigint,
    frame_id bigint,
    worker_id varchar,
    current_index integer,
    current_item text,
    context_value text,
    stack_trace text,
    error text,
    distributed_state varchar,
    context_key varchar,
    trace_component json,
    tenant_id text not null default 'default',
    organization_id text not null default 'default',
    stream_id text,
    aggregate_id text,
    aggregate_type text,
    schema_name text,
    producer text,
    causation_id text,
    correlation_id text,
    idempotency_key text,
    envelope_checksum text,
    stream_version bigint,
    schema_version integer not null default 1,
    event_time timestamptz not null default now(),
    ingest_time timestamptz not null default now(),
    payload_ref json,
    seq bigint,
    lane smallint,
    position bigint,
    origin text not null default 'imported',
    primary key (execution_id, event_id),
    constraint chk_event_origin check (
        origin = 'imported'
        or (
            origin in ('decided', 'reported')
            and seq > 0 and lane is not null and position > 0 and event_type is not null
        )
    ),
    constraint chk_event_result_shape check (
        -- The functions that look into JSON refuse a NUL, which a value may hold.
        result is null
        or position('\u0000' in result::text) > 0
        or (
            json_typeof(result) = 'object'
            and json_typeof(result -> 'status') = 'string'
            and coalesce(json_typeof(result -> 'reference'), 'object') = 'object'
            and (result::jsonb - array['status', 'reference', 'context']) = '{}'::jsonb
        )
    )
) partition by range (execution_id);

create table if not exists noetl.event_default partition of noetl.event default;

-- A log has one event per place, and an execution that we decide ends once.
create unique index if not exists event_place on noetl.event (execution_id, seq);
create unique index if not exists event_end on noetl.event (execution_id)
    where origin = 'decided'
        and event_type in ('playbook.completed', 'playbook.failed', 'playbook_cancelled');
create index if not exists event_key on noetl.event (execution_id, idempotency_key)
    where idempotency_key is not null;
create index if not exists event_position on noetl.event (lane, position);

create or replace view noetl.event_log as select * from noetl.event;

-- Commit order by lane: whoever appends holds its lane's row from the moment it draws positions
-- until it has committed, so a reader that follows a lane never meets a late row.
create table if not exists noetl.lane (
    lane smallint primary key,
    position bigint not null,
    newest_event_id bigint not null
) with (fillfactor = 10);

insert into noetl.lane (lane, position, newest_event_id)
select lane, 0, 0 from generate_series(0, 15) lane
on conflict (lane) do nothing;

-- One command, by the id of its `command.issued`. Its settings are in the log, at `issued_seq`.
create table if not exists noetl.command (
    command_id bigint not null,
    event_id bigint not null,
    execution_id bigint not null,
    catalog_id bigint,
    parent_execution_id bigint,
    parent_command_id bigint,
    stage_id bigint,
    frame_id bigint,
    step_name text not null,
    tool_kind text,
    status text not null default 'PENDING',
    worker_id text,
    claimed_at timestamptz,
    started_at timestamptz,
    completed_at timestamptz,
    attempt integer default 1,
    context json,
    context_key text,
    loop_event_id text,
    iter_index integer,
    meta json,
    result json,
    error text,
    latest_event_id bigint,
    prev_event_id bigint,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    issued_seq bigint,
    primary key (execution_id, command_id),
    -- A command that is held has a holder; one that waits has none; one that was stopped or
    -- expired may never have had one. Rows without `issued_seq` came from elsewhere.
    constraint command_is_sound check (
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
    )
) with (fillfactor = 70);

-- A table that is partitioned by execution can only keep ids apart within one.
do $$
begin
    if (select relkind from pg_class where oid = 'noetl.command'::regclass) = 'p' then
        create unique index if not exists command_event on noetl.command (event_id, execution_id);
    else
        create unique index if not exists command_event on noetl.command (event_id);
    end if;
end
$$;

create index if not exists command_open on noetl.command (event_id)
    where completed_at is null and issued_seq is not null;
create index if not exists command_completed on noetl.command (completed_at)
    where completed_at is not null;
