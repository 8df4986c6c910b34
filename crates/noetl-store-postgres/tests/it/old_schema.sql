-- A database as the published server and its Python predecessor leave it behind: the tables that
-- matter here, with rows that made trouble.
create schema noetl;

create sequence noetl.snowflake_seq;

create function noetl.snowflake_id() returns bigint language sql as $$
    select (((extract(epoch from clock_timestamp()) * 1000)::bigint - 1704067200000) << 23)
        | ((1 & 31) << 18) | (nextval('noetl.snowflake_seq') % 1024)
$$;

create table noetl.resource (name varchar primary key, meta jsonb);
insert into noetl.resource (name) values ('playbook'), ('credential'), ('mcp'), ('agent'), ('memory');

create table noetl.catalog (
    catalog_id bigint primary key default noetl.snowflake_id(),
    path text not null,
    version smallserial not null,
    kind varchar not null references noetl.resource (name),
    content text,
    layout jsonb,
    payload jsonb,
    meta jsonb,
    created_at timestamp not null default now(),
    credential_id integer,
    unique (path, version)
);

create table noetl.event (
    execution_id bigint,
    catalog_id bigint not null references noetl.catalog (catalog_id),
    event_id bigint,
    parent_event_id bigint,
    parent_execution_id bigint,
    created_at timestamp not null default now(),
    event_type varchar,
    node_id varchar,
    node_name varchar,
    node_type varchar,
    status varchar,
    duration double precision,
    context jsonb,
    result jsonb,
    meta jsonb,
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
    trace_component jsonb,
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
    payload_ref jsonb,
    primary key (execution_id, event_id),
    constraint chk_event_result_shape check (
        result is null
        or (
            jsonb_typeof(result) = 'object' and jsonb_typeof(result -> 'status') = 'string'
            and (result - 'status' - 'reference' - 'context') = '{}'::jsonb
        )
    )
) partition by range (execution_id);

create table noetl.event_pre_2026 partition of noetl.event
    for values from (minvalue) to (264905529753600000);
create table noetl.event_2026_q1 partition of noetl.event
    for values from (264905529753600000) to (297520437657600000);
create table noetl.event_2026_gke partition of noetl.event
    for values from (569000000000000000) to (600000000000000000);
create table noetl.event_default partition of noetl.event default;
create index idx_event_execution_id on noetl.event (execution_id);
create index idx_event_type on noetl.event (event_type);
create view noetl.event_log as select * from noetl.event;

create table noetl.command (
    command_id bigint not null,
    event_id bigint not null,
    execution_id bigint not null,
    catalog_id bigint not null,
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
    attempt int default 1,
    context jsonb,
    context_key text,
    loop_event_id text,
    iter_index int,
    meta jsonb,
    result jsonb,
    error text,
    latest_event_id bigint,
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    primary key (execution_id, command_id)
) partition by hash (execution_id);
create table noetl.command_p00 partition of noetl.command for values with (modulus 2, remainder 0);
create table noetl.command_p01 partition of noetl.command for values with (modulus 2, remainder 1);

create table noetl.execution (
    execution_id bigint primary key,
    status text,
    last_event_id bigint,
    last_event_type text,
    start_time timestamp,
    end_time timestamp,
    error text,
    state jsonb
);

create table noetl.outbox (
    outbox_id bigserial primary key,
    execution_id bigint,
    event_id bigint not null,
    subject text,
    payload jsonb not null,
    payload_bytes bytea,
    payload_codec text not null default 'arrow-feather',
    status text not null default 'PENDING'
        check (status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')),
    attempts integer not null default 0,
    available_at timestamptz not null default now(),
    locked_at timestamptz,
    published_at timestamptz,
    last_error text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    unique (execution_id, event_id)
);

create table noetl.projection_snapshot (
    aggregate_id text not null,
    aggregate_type text not null,
    tenant_id text not null default 'default',
    organization_id text not null default 'default',
    version bigint not null,
    snapshot jsonb not null,
    checksum text,
    meta jsonb default '{}',
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    primary key (tenant_id, organization_id, aggregate_type, aggregate_id)
);

create table noetl.runtime (
    runtime_id bigint primary key,
    name text not null,
    kind text not null check (kind in ('worker_pool', 'server_api', 'broker')),
    uri text,
    status text not null,
    labels jsonb,
    capabilities jsonb,
    capacity integer,
    runtime jsonb,
    heartbeat timestamptz default now(),
    created_at timestamptz default now(),
    updated_at timestamptz default now()
);
create unique index idx_runtime_kind_name on noetl.runtime (kind, name);

create table noetl.schedule (
    schedule_id bigint primary key default noetl.snowflake_id(),
    playbook_path text not null,
    playbook_version text,
    cron text,
    interval_seconds integer,
    enabled boolean default true,
    timezone text default 'UTC',
    next_run_at timestamptz,
    last_run_at timestamptz,
    last_status text,
    input_payload jsonb,
    created_at timestamptz default now(),
    updated_at timestamptz default now(),
    meta jsonb
);

create table noetl.transient (
    execution_id bigint not null,
    var_name text not null,
    var_type text not null
        check (var_type in ('user_defined', 'step_result', 'computed', 'iterator_state')),
    var_value jsonb not null,
    source_step text,
    created_at timestamptz default now(),
    accessed_at timestamptz,
    access_count int default 0,
    expires_at timestamptz,
    scope text,
    primary key (execution_id, var_name)
);

create table noetl.credential (
    id bigint primary key default noetl.snowflake_id(),
    name text not null unique,
    type text not null,
    data_encrypted text not null,
    schema jsonb,
    meta jsonb,
    tags text[],
    description text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

create table noetl.keychain (
    cache_key text primary key,
    keychain_name text not null,
    catalog_id bigint references noetl.catalog (catalog_id),
    credential_type text not null,
    cache_type text check (cache_type in ('secret', 'token')),
    scope_type text check (scope_type in ('local', 'global', 'shared')),
    execution_id bigint,
    parent_execution_id bigint,
    data_encrypted text not null,
    schema jsonb,
    expires_at timestamptz not null,
    created_at timestamptz default now(),
    accessed_at timestamptz,
    access_count int default 0,
    auto_renew boolean default false,
    renew_config jsonb
);

insert into noetl.catalog (catalog_id, path, version, kind, content) values
    (1000, 'old/etl', 1, 'playbook', 'apiVersion: noetl.io/v2'),
    (1001, 'old/etl', 2, 'playbook', null);

-- Ended well; ids of the application's family.
insert into noetl.event (execution_id, catalog_id, event_id, created_at, event_type, node_name, node_type, status, context, result, duration) values
    (280000000000000001, 1000, 280000000000000010, '2026-01-20 10:00:00', 'playbook_started', 'old/etl', 'execution', 'STARTED', '{"workload": {"a": 1}, "path": "old/etl"}', null, null),
    (280000000000000001, 1000, 280000000000000020, '2026-01-20 10:00:01', 'step.enter', 'fetch', 'python', 'ENTERED', null, null, null),
    (280000000000000001, 1000, 280000000000000030, '2026-01-20 10:00:02.5', 'call.done', 'fetch', 'python', 'COMPLETED', null, '{"status": "ok", "context": {"rows": 3}}', 1.5),
    (280000000000000001, 1000, 280000000000000040, '2026-01-20 10:00:03', 'playbook.completed', 'playbook', null, 'COMPLETED', null, '{"status": "COMPLETED"}', null);

-- Two ends: the later one counts. A row without type, status and step.
insert into noetl.event (execution_id, catalog_id, event_id, created_at, event_type, node_name, status, error) values
    (280000000000000002, 1000, 280000000000000110, '2026-01-21 10:00:00', 'playbook_started', 'old/etl', 'STARTED', null),
    (280000000000000002, 1000, 280000000000000120, '2026-01-21 10:00:01', null, null, null, null),
    (280000000000000002, 1000, 280000000000000130, '2026-01-21 10:00:02', 'playbook.completed', 'playbook', 'COMPLETED', null),
    (280000000000000002, 1000, 280000000000000140, '2026-01-21 10:00:03', 'playbook_failed', 'playbook', 'FAILED', 'too late');

-- Unfinished, with ids of both families in one log: the database's are about twice as large.
insert into noetl.event (execution_id, catalog_id, event_id, created_at, event_type, node_name, status) values
    (570000000000000003, 1001, 570000000000000200, '2026-02-01 10:00:00', 'playbook.initialized', 'old/etl', 'STARTED'),
    (570000000000000003, 1001, 285000000000000300, '2026-02-01 10:00:01', 'step_started', 'load', 'RUNNING'),
    (570000000000000003, 1001, 570000000000000210, '2026-02-01 10:00:02', 'command.issued', 'load', 'PENDING');

-- The life of a subscription, which is no execution.
insert into noetl.event (execution_id, catalog_id, event_id, created_at, event_type, node_name, status) values
    (281000000000000004, 1000, 281000000000000400, '2026-01-22 10:00:00', 'subscription.registered', 'sub', 'REGISTERED');

-- A row of an id that no partition was laid out for.
insert into noetl.event (execution_id, catalog_id, event_id, created_at, event_type, node_name, status) values
    (470000000000000005, 1000, 470000000000000500, '2026-03-01 10:00:00', 'playbook_started', 'old/etl', 'STARTED');

insert into noetl.command (command_id, event_id, execution_id, catalog_id, step_name, tool_kind)
values (570000000000000211, 570000000000000210, 570000000000000003, 1001, 'load', 'python');

insert into noetl.credential (name, type, data_encrypted, tags)
values ('pg', 'postgres', '{"v":1}', array['a', 'b']);
insert into noetl.runtime (runtime_id, name, kind, status) values (1, 'pool', 'worker_pool', 'ready');
insert into noetl.transient (execution_id, var_name, var_type, var_value)
values (280000000000000001, 'x', 'user_defined', '{"n": 1}');
