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
