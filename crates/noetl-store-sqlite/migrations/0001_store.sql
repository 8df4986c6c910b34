-- The embedded store. Times are microseconds since 1970 in UTC, ids are 64-bit numbers, JSON is
-- compact text that is checked where it is written, not here.

-- One execution as lists show it. Its version is the number of events in its log and is what an
-- append is checked against.
create table execution (
    id integer primary key,
    tenant_id text not null,
    start_key integer not null,
    catalog_id integer not null,
    path text not null,
    playbook_version integer not null,
    parent_id integer,
    status text not null,
    version integer not null check (version > 0),
    started_at integer not null,
    updated_at integer not null,
    ended_at integer,
    error text,
    steps_entered integer not null,
    steps_completed integer not null,
    steps_failed integer not null,
    steps_running integer not null,
    current_step text,
    check (case status
        when 'RUNNING' then ended_at is null
        when 'COMPLETED' then ended_at is not null
        when 'FAILED' then ended_at is not null
        when 'CANCELLED' then ended_at is not null
        else false
    end)
) strict;

-- Both end in the row's id, so a list in either order needs no sort.
create index execution_started on execution (tenant_id, started_at);
create index execution_status on execution (tenant_id, status, started_at);
create index execution_unfinished on execution (id) where ended_at is null;

-- The log. Rows are only ever added, at the end: a row's position is its place in commit order, so
-- the table grows on one page at a time whatever the executions are. The writer keeps a log free of
-- gaps by the execution's version; the index makes a second event at one place impossible.
create table event (
    position integer primary key,
    execution_id integer not null,
    seq integer not null,
    event_id integer not null,
    created_at integer not null,
    origin text not null check (origin in ('decided', 'reported')),
    event_type text not null,
    node_name text not null,
    node_type text,
    status text not null,
    command_id integer,
    parent_execution_id integer,
    worker_id text,
    meta text,
    error text,
    context text,
    result text
) strict;

create unique index event_place on event (execution_id, seq);
create index event_reported on event (execution_id, event_id) where origin = 'reported';

-- The largest event id ever written: finding it in the log would read all of it.
create table log_head (
    id integer primary key check (id = 1),
    newest_event_id integer not null
) strict;

-- One command, by the id of its `command.issued`. Its settings are in the log, at `issued_seq`.
-- A command that is held has a holder; one that waits has none; one that was stopped or expired
-- may never have had one.
create table command (
    id integer primary key,
    execution_id integer not null,
    issued_seq integer not null,
    step text not null,
    tool text not null,
    attempt integer not null,
    state text not null,
    worker_id text,
    issued_at integer not null,
    ended_at integer,
    check (case state
        when 'PENDING' then worker_id is null and ended_at is null
        when 'CLAIMED' then worker_id is not null and ended_at is null
        when 'RUNNING' then worker_id is not null and ended_at is null
        when 'COMPLETED' then ended_at is not null
        when 'FAILED' then ended_at is not null
        when 'CANCELLED' then ended_at is not null
        when 'EXPIRED' then ended_at is not null
        else false
    end)
) strict;

create index command_open on command (id) where ended_at is null;

-- Documents by path and version.
create table catalog (
    id integer primary key,
    tenant_id text not null,
    path text not null,
    version integer not null check (version > 0),
    kind text not null,
    content text not null,
    layout text,
    payload text,
    meta text,
    created_at integer not null,
    unique (tenant_id, path, version)
) strict;

create index catalog_created on catalog (tenant_id, created_at);
