-- One row per append instead of one row per event. Nothing is rewritten: rows of earlier versions stay
-- in the table `event_row`, which is read together with appends and emptied by retention.
alter table event rename to event_row;

-- Frees the name for the table. SQLite has no statement that renames an index.
pragma writable_schema = on;
update sqlite_schema set
    name = 'event_row_append',
    sql = replace(sql, 'INDEX event_append on', 'INDEX event_row_append on')
where type = 'index' and name = 'event_append';
pragma writable_schema = reset;

-- The events that one append adds to a log, as noetl_model::row::body encodes them. Positions are
-- positions of events: the last event has the position of its append, and the others the ones before.
-- `newest_event_id` is the largest event ID in the log up to and including this append, or null if
-- that is `last_event_id`.
create table event_append (
    position integer primary key,
    execution_id integer not null,
    first_seq integer not null,
    last_seq integer not null check (last_seq >= first_seq),
    last_event_id integer not null,
    newest_event_id integer,
    created_at integer not null,
    body text not null
) strict;

create unique index event_append_log on event_append (execution_id, first_seq);

-- Locates events that no search over appends finds: IDs that are not above all earlier ones of their
-- log, and idempotency keys.
create table event_lookup (
    execution_id integer not null,
    id integer not null,
    is_key integer not null check (is_key = 0 or is_key = 1),
    seq integer not null,
    primary key (execution_id, id, is_key)
) strict, without rowid;

-- One row per event, for people and for SQL.
create view event as
select position, execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type,
    status, command_id, parent_execution_id, worker_id, meta, error, context, result, duration,
    idempotency_key, more
from event_row
union all
select position, execution_id, seq, event_id, created_at, origin, event_type, node_name,
    columns ->> 'k', status,
    case json_type(element, '$[3]')
        when 'text' then cast(element ->> 3 as integer)
        when 'integer' then last_event_id - (element ->> 3)
    end,
    columns ->> 'p', columns ->> 'w', columns -> 'm', columns ->> 'e', columns -> 'x',
    case
        when columns -> 'r' is not null then columns -> 'r'
        when columns -> 'd' is not null
            then '{"status":"' || status || '","context":{"data":' || (columns -> 'd') || '}}'
        when columns -> 'c' is not null
            then '{"status":"' || status || '","context":' || (columns -> 'c') || '}'
    end,
    columns ->> 't', columns ->> 'i', columns -> 'y'
from (
    select position, execution_id, seq, last_event_id, element, columns, origin, event_type,
        element ->> 1 as node_name,
        case json_type(element, '$[2]')
            when 'text' then cast(element ->> 2 as integer)
            else last_event_id - coalesce(element ->> 2, 0)
        end as event_id,
        case json_type(columns, '$.a')
            when 'text' then cast(columns ->> 'a' as integer)
            else created_at - coalesce(columns ->> 'a', 0)
        end as created_at,
        coalesce(columns ->> 's', case when origin = 'decided' then
            case event_type
                when 'step.enter' then 'ENTERED'
                when 'command.issued' then 'PENDING'
                when 'command.claimed' then 'RUNNING'
                when 'call.done' then 'COMPLETED'
                when 'command.completed' then 'COMPLETED'
                when 'step.exit' then 'COMPLETED'
                when 'ctx.updated' then 'CONTEXT'
                when 'playbook_started' then 'STARTED'
                when 'playbook.completed' then 'COMPLETED'
                when 'playbook.failed' then 'FAILED'
                when 'playbook_cancelled' then 'CANCELLED'
                when 'command.started' then 'STARTED'
                when 'command.parked' then 'WAITING'
                when 'command.failed' then 'FAILED'
                when 'command.expired' then 'EXPIRED'
                when 'command.cancelled' then 'CANCELLED'
                when 'call.error' then 'FAILED'
                when 'tokens.dropped' then 'DROPPED'
                when 'step.denied' then 'DENIED'
                when 'step.held' then 'WAITING'
            end
        end) as status
    from (
        select a.position - (a.last_seq - a.first_seq) + e.key as position, a.execution_id,
            a.first_seq + e.key as seq, a.last_event_id, a.created_at, e.value as element,
            coalesce(e.value -> 4, '{}') as columns,
            coalesce(e.value ->> '$[4].o', 'decided') as origin, e.value ->> 0 as event_type
        from event_append a, json_each(a.body) e
    )
);
