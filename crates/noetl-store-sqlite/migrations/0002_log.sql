-- A log that also keeps what came from elsewhere, as it came: such rows may lack a type, a step and
-- a status. An event id is in a log once, a report is found by the id it came with, and an
-- execution ends once. The table is made anew because SQLite cannot change a check.
create table event_2 (
    position integer primary key,
    execution_id integer not null,
    seq integer not null,
    event_id integer not null,
    created_at integer not null,
    origin text not null check (origin in ('decided', 'reported', 'imported')),
    event_type text,
    node_name text,
    node_type text,
    status text,
    command_id integer,
    parent_execution_id integer,
    worker_id text,
    meta text,
    error text,
    context text,
    result text,
    duration real,
    idempotency_key integer,
    check (origin = 'imported' or (event_type is not null and node_name is not null and status is not null))
) strict;

-- Two reports with one id were possible: the later ones get ids of their own, and the one they came
-- with as their key.
insert into event_2
select position, execution_id, seq, iif(is_later, -position, event_id), created_at, origin,
    event_type, node_name, node_type, status, command_id, parent_execution_id, worker_id, meta,
    error, context, result, null, iif(is_later, event_id, null)
from (
    select *, row_number() over (partition by execution_id, event_id order by seq) > 1 as is_later
    from event
);

drop table event;
alter table event_2 rename to event;

create unique index event_place on event (execution_id, seq);
create unique index event_id on event (execution_id, event_id);
create unique index event_end on event (execution_id)
    where origin = 'decided'
        and event_type in ('playbook.completed', 'playbook.failed', 'playbook_cancelled');
create index event_key on event (execution_id, idempotency_key)
    where idempotency_key is not null;

-- The event at the execution's version. An append says which event it was decided on, because two
-- logs of one length need not be the same.
alter table execution add column last_event_id integer not null default 0;

update execution set last_event_id = coalesce(
    (select event_id from event where execution_id = execution.id and seq = execution.version), 0
);
