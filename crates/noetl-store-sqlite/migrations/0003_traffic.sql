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
    check (status <> 'IN_FLIGHT' or locked_at is not null)
) strict;

-- What is not published, in the order it is claimed in.
create index outbox_open on outbox (outbox_id) where status <> 'PUBLISHED';
