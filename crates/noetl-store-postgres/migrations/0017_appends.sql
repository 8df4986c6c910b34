-- The log stores appends: all events that one batch adds to one execution are one row, and the views
-- `event` and `event_log` show one row per event. The table of rows stays readable as `event_row`,
-- is never rewritten, gets no new rows, and empties by retention.

-- An older program that still runs would write rows, or read only a part of a log. It stops with an
-- error instead, and cannot open the database again.
do $$
declare
    old record;
begin
    for old in
        select p.oid::regprocedure as signature
        from pg_proc p
        where p.pronamespace = 'noetl'::regnamespace and (
            p.proname ~ '^(journal_append|event_find|event_find_many|subscription_event)_[0-9]+$'
            or p.proname ~ '^event_(bounds|before_name|partition_is_free|partition_make)_[0-9]+$'
            or p.proname ~ '^event_partitions_(ahead|drop|replace)_[0-9]+$'
        )
    loop
        execute format('drop function %s', old.signature);
    end loop;
end
$$;

alter table noetl.event rename to event_row;

-- An append covers `first_seq` to `last_seq`. Its position is that of its last event; those of its
-- events are consecutive. `newest_event_id` is the largest event ID of the log up to and including
-- this append, or null if `last_event_id` is. The body is an array with one element per event; the
-- format is documented in `noetl_model::row::body`.
create table noetl.event_append (
    execution_id bigint not null,
    first_seq bigint not null,
    last_seq bigint not null,
    last_event_id bigint not null,
    newest_event_id bigint,
    created_at timestamp not null,
    lane smallint not null,
    position bigint not null,
    body text not null,
    primary key (execution_id, first_seq),
    constraint event_append_is_sound check (first_seq > 0 and last_seq >= first_seq and position > 0)
) partition by range (execution_id);

create index event_append_position on noetl.event_append (lane, position);

create table noetl.event_append_default partition of noetl.event_append default;

-- Partitions for the ranges that the rows have.
do $$
declare
    part record;
begin
    for part in
        select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
        from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'noetl.event_row'::regclass and c.relpartbound is not null
            and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    loop
        execute format(
            'create table noetl.%I partition of noetl.event_append %s',
            'event_append_' || regexp_replace(part.name, '^event_', ''), part.bound
        );
    end loop;
end
$$;

-- Finds events in appends whose ID is not above all earlier ones of their log, and events by the ID
-- that a report came with (`is_key`). Other IDs ascend with sequence numbers and are found by halving.
create table noetl.event_lookup (
    execution_id bigint not null,
    id bigint not null,
    is_key boolean not null,
    seq bigint not null,
    primary key (execution_id, id, is_key)
);

-- The largest event ID of the log; null until the first append after this migration.
alter table noetl.execution add column newest_event_id bigint;

-- Returns the status of a decided event whose body omits it, as `noetl_model::row::body::DECIDED` lists it.
create function noetl.event_status_1(event_type text) returns text
language sql immutable parallel safe as $$
    select case event_type
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
$$;

-- Returns the events of a body in order. The functions that look into JSON reject an escaped NUL, so
-- U+FDD0, written as nobody writes it, replaces it until `event_json_1` or `event_text_1`.
create function noetl.event_elements_1(body text) returns table (element json, number bigint)
language sql immutable parallel safe as $$
    select e.value, e.ordinality
    from json_array_elements(replace(body, '\u0000', '\uFdD0')::json) with ordinality e
$$;

create function noetl.event_json_1(value json) returns json
language sql immutable parallel safe as $$
    select replace(value::text, '\uFdD0', '\u0000')::json
$$;

-- A text cannot have a NUL.
create function noetl.event_text_1(value text) returns text
language sql immutable parallel safe as $$
    select replace(replace(value, '\uFdD0', '\u0000'), U&'\FDD0', U&'\FFFD')
$$;

-- Returns the number that a body stores relative to that of the append's last event: the difference, or
-- the number itself as a text.
create function noetl.event_relative_1(last bigint, value json) returns bigint
language sql immutable parallel safe as $$
    select case json_typeof(value)
        when 'number' then last - value::text::bigint
        when 'string' then (value #>> '{}')::bigint
        else last
    end
$$;

-- Returns the number that a text has, or null if it is none that a `bigint` can have. Columns that
-- came with a row can have any content.
create function noetl.event_number_1(value text) returns bigint
language sql immutable parallel safe as $$
    select case
        when value ~ '^-?[0-9]{1,18}$' then value::bigint
        when value ~ '^-?[0-9]{19}$' then case
            when value::numeric between -9223372036854775808 and 9223372036854775807
                then value::bigint
        end
    end
$$;

-- Returns the time that a text in the form of RFC 3339 has, or null if it is none.
create function noetl.event_time_1(value text) returns timestamptz
language sql stable parallel safe as $$
    select case
        when value !~ (
            '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?'
            '(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$'
        ) then null
        when substr(value, 1, 4)::integer < 1 or substr(value, 6, 2)::integer not between 1 and 12
            or substr(value, 9, 2)::integer < 1
            then null
        when substr(value, 9, 2)::integer <= extract(day from make_date(
            substr(value, 1, 4)::integer, substr(value, 6, 2)::integer, 1
        ) + interval '1 month - 1 day')
            then value::timestamptz
    end
$$;

-- The view has the columns of `event_row`, whatever it has, in the types that it has them in: an
-- adopted one has columns of its own, and `jsonb`.
do $do$
declare
    of_rows text;
    of_appends text;
begin
    select
        string_agg(format('r.%I', c.attname), ', ' order by c.attnum),
        string_agg(
            format(
                case
                    when c.atttypid = 'jsonb'::regtype and m.expression is not null
                        then 'replace((%s)::text, ''\u0000'', ''\ufffd'')::%s as %I'
                    else '(%s)::%s as %I'
                end,
                coalesce(m.expression, 'null'), format_type(c.atttypid, c.atttypmod), c.attname
            ),
            ', ' order by c.attnum
        )
    into of_rows, of_appends
    from pg_attribute c
    left join (values
        ('execution_id', 'e.execution_id'), ('catalog_id', 'e.catalog_id'),
        ('event_id', 'e.event_id'), ('created_at', 'e.created_at'),
        ('event_type', 'e.event_type'), ('node_name', 'e.node_name'), ('status', 'e.status'),
        ('command_id', 'e.command_id'), ('tenant_id', 'e.tenant_id'), ('seq', 'e.seq'),
        ('lane', 'e.lane'), ('position', 'e.position'), ('origin', 'e.origin'),
        ('node_type', $$noetl.event_text_1(e.c ->> 'k')$$),
        ('parent_execution_id', $$(e.c ->> 'p')::bigint$$),
        ('worker_id', $$noetl.event_text_1(e.c ->> 'w')$$),
        ('context', $$noetl.event_json_1(e.c -> 'x')$$),
        ('meta', $$noetl.event_json_1(e.c -> 'm')$$),
        ('error', $$noetl.event_text_1(e.c ->> 'e')$$),
        ('duration', $$(e.c ->> 't')::double precision$$),
        ('more', $$noetl.event_json_1(e.more)$$),
        (
            'result',
            $$noetl.event_json_1(coalesce(
                e.c -> 'r',
                ('{"status":"' || e.status || '","context":{"data":' || (e.c -> 'd')::text || '}}')::json,
                ('{"status":"' || e.status || '","context":' || (e.c -> 'c')::text || '}')::json
            ))$$
        ),
        (
            'node_id',
            $$case
                when e.origin = 'decided' and e.event_type = 'playbook_started' then 'playbook'
                when e.origin = 'decided' and e.event_type in (
                    'subscription.registered', 'subscription.activated', 'subscription.paused',
                    'subscription.resumed', 'subscription.draining', 'subscription.deactivated'
                ) then 'subscription'
                else coalesce(noetl.event_text_1(e.more ->> 'node_id'), e.node_name)
            end$$
        ),
        ('idempotency_key', $$coalesce(e.c ->> 'i', noetl.event_text_1(e.more ->> 'idempotency_key'))$$),
        ('parent_event_id', $$noetl.event_number_1(e.more ->> 'parent_event_id')$$),
        ('prev_event_id', $$noetl.event_number_1(e.more ->> 'prev_event_id')$$),
        ('stage_id', $$noetl.event_number_1(e.more ->> 'stage_id')$$),
        ('frame_id', $$noetl.event_number_1(e.more ->> 'frame_id')$$),
        ('stack_trace', $$noetl.event_text_1(e.more ->> 'stack_trace')$$),
        ('aggregate_id', $$noetl.event_text_1(e.more ->> 'aggregate_id')$$),
        ('aggregate_type', $$noetl.event_text_1(e.more ->> 'aggregate_type')$$),
        ('organization_id', $$coalesce(noetl.event_text_1(e.more ->> 'organization_id'), 'default')$$),
        ('schema_version', '1'),
        (
            'event_time',
            $$coalesce(
                case when e.origin = 'reported' then noetl.event_time_1(e.more ->> 'event_time') end,
                e.created_at at time zone 'utc'
            )$$
        ),
        ('ingest_time', $$e.created_at at time zone 'utc'$$)
    ) m (name, expression) on m.name = c.attname
    where c.attrelid = 'noetl.event_row'::regclass and c.attnum > 0 and not c.attisdropped;
    execute format(
        $view$
        create view noetl.event as
        select %s from noetl.event_row r
        union all
        select %s
        from (
            select
                a.execution_id, a.first_seq + u.number - 1 as seq,
                noetl.event_relative_1(a.last_event_id, u.element -> 2) as event_id,
                case json_typeof(c.columns -> 'a')
                    when 'string' then timestamp '1970-01-01'
                        + (c.columns ->> 'a')::bigint * interval '1 microsecond'
                    else a.created_at
                        - coalesce((c.columns ->> 'a')::bigint, 0) * interval '1 microsecond'
                end as created_at,
                c.origin, c.event_type, noetl.event_text_1(u.element ->> 1) as node_name,
                coalesce(
                    noetl.event_text_1(c.columns ->> 's'),
                    case when c.origin = 'decided' then noetl.event_status_1(c.event_type) end
                ) as status,
                case when u.element ->> 3 is not null then
                    noetl.event_relative_1(a.last_event_id, u.element -> 3)
                end as command_id,
                a.lane, a.position - a.last_seq + a.first_seq + u.number - 1 as position,
                coalesce(x.tenant_id, s.tenant_id, 'default') as tenant_id,
                coalesce(
                    noetl.event_number_1(c.columns -> 'y' ->> 'catalog_id'),
                    x.catalog_id, s.catalog_id
                ) as catalog_id,
                c.columns as c, c.columns -> 'y' as more
            from noetl.event_append a
            cross join lateral noetl.event_elements_1(a.body) u
            cross join lateral (
                select u.element -> 4 as columns, coalesce(u.element -> 4 ->> 'o', 'decided') as origin,
                    noetl.event_text_1(u.element ->> 0) as event_type
            ) c
            left join noetl.execution x on x.execution_id = a.execution_id
            left join noetl.subscription s on s.id = a.execution_id
        ) e
        $view$,
        of_rows, of_appends
    );
end
$do$;

create or replace view noetl.event_log as select * from noetl.event;
