-- What passes between executions, replicas and the world outside. Times are microseconds by the
-- store's own clock; the writer compares them with that clock, never with a caller's.

-- Who may do what only one may do at a time. A row stays when its lease is over, so that the epoch
-- only ever grows.
create table leader (
    name text primary key,
    holder text not null,
    epoch integer not null check (epoch > 0),
    until integer not null
) strict, without rowid;

-- How far a reader of a stream has come. A position only ever grows.
create table stream_cursor (
    name text primary key,
    position integer not null,
    updated_at integer not null
) strict, without rowid;

-- Folded state that spares reading a log from its beginning. The body is text, kept to the byte,
-- because its checksum is of these bytes.
create table projection_snapshot (
    tenant_id text not null,
    organization_id text not null default 'default',
    aggregate_type text not null,
    aggregate_id text not null,
    version integer not null,
    snapshot text not null,
    checksum text not null,
    meta text not null,
    created_at integer not null,
    updated_at integer not null,
    primary key (tenant_id, organization_id, aggregate_type, aggregate_id)
) strict;

-- Timers, and what one execution asks of another; written in the sender's transaction and removed
-- when delivered. A row is ready at `ready_at`: its time at first, then the end of the lease of
-- whoever took it, or the time it was put off to.
create table due (
    id integer primary key,
    tenant_id text not null,
    execution_id integer not null,
    kind text not null,
    target_id integer not null,
    due_at integer not null,
    payload text not null,
    attempts integer not null default 0,
    ready_at integer not null
) strict;

-- Ends in the row's id, so rows come out of it in the order they are taken in.
create index due_ready on due (ready_at);
create index due_execution on due (execution_id, due_at);

-- For operators: what executions wait for by themselves.
create view timer as
select id, tenant_id, execution_id, kind, due_at, ready_at, attempts
from due
where target_id = execution_id;

-- Committed events on their way to publishers outside, written in the event's transaction when the
-- outbox is on. Ids are never used again, so a late answer about a row that was purged hits nothing.
create table outbox (
    outbox_id integer primary key autoincrement,
    tenant_id text not null,
    execution_id integer not null,
    event_id integer not null,
    subject text not null,
    payload text not null,
    payload_codec text not null,
    status text not null default 'PENDING'
        check (status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')),
    attempts integer not null default 0,
    available_at integer not null,
    locked_at integer,
    published_at integer,
    last_error text,
    created_at integer not null,
    updated_at integer not null,
    unique (execution_id, event_id),
    check (status <> 'IN_FLIGHT' or locked_at is not null),
    check ((status = 'PUBLISHED') = (published_at is not null))
) strict;

-- What is not published, in the order it is claimed in.
create index outbox_open on outbox (outbox_id) where status <> 'PUBLISHED';
create index outbox_published on outbox (published_at) where status = 'PUBLISHED';

-- Programs that said they are there.
create table runtime (
    runtime_id integer primary key,
    tenant_id text not null,
    kind text not null check (kind in ('worker_pool', 'server_api', 'broker')),
    name text not null,
    uri text,
    status text not null,
    labels text,
    capabilities text,
    capacity integer,
    runtime text,
    heartbeat integer not null,
    created_at integer not null,
    updated_at integer not null,
    unique (tenant_id, kind, name)
) strict;

create index runtime_heartbeat on runtime (heartbeat);

-- Subscriptions with their current state, so that no retention of events can lose it.
create table subscription (
    id integer primary key,
    tenant_id text not null,
    path text not null,
    catalog_id integer not null,
    state text not null
        check (state in ('REGISTERED', 'ACTIVE', 'PAUSED', 'DRAINING', 'DEACTIVATED')),
    last_event_type text not null,
    created_at integer not null,
    updated_at integer not null
) strict;

-- A path has at most one subscription that is not deactivated.
create unique index subscription_live on subscription (tenant_id, path)
    where state <> 'DEACTIVATED';
create index subscription_tenant on subscription (tenant_id);

-- The messages subscriptions have seen, and the execution each became. The scope 0 is shared by
-- callers without a subscription, so the tenant is part of the key.
create table subscription_dedup (
    tenant_id text not null,
    subscription_id integer not null,
    dedup_key text not null,
    execution_id integer not null,
    seen_at integer not null,
    primary key (tenant_id, subscription_id, dedup_key)
) strict, without rowid;

create index subscription_dedup_seen on subscription_dedup (seen_at);

-- When a playbook is to be started next. The execution of a run is fixed before it is started, so
-- that starting it again is a repeat.
create table schedule (
    schedule_id integer primary key,
    tenant_id text not null,
    playbook_path text not null,
    playbook_version integer,
    cron text,
    interval_seconds integer,
    enabled integer not null check (enabled in (0, 1)),
    timezone text,
    next_run_at integer,
    run_execution_id integer,
    last_run_at integer,
    last_status text,
    input_payload text,
    meta text,
    created_at integer not null,
    updated_at integer not null,
    check (run_execution_id is null or next_run_at is not null)
) strict;

-- Ends in the row's id, so what is ready comes out of it in order.
create index schedule_next on schedule (next_run_at) where enabled = 1 and next_run_at is not null;
create index schedule_tenant on schedule (tenant_id);
