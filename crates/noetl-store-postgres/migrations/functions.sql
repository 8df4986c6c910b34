-- What the journal asks, in one round trip. Replaced at every migration run; a change of its
-- parameters takes a new name, so that two versions of the program can share a database.
--
-- Items are at most one per execution, given as parallel arrays. Rows are locked in id order, so
-- two appenders wait for each other and never in a circle: first the rows that exist, then the new
-- ones, then the lane, which is held until the commit.
--
-- Rows are changed many at a time: whoever sends a statement per row has the server read the checks
-- of the table from their text for each of them.
create or replace function noetl.journal_append_6(
    on_lane smallint,
    wake text,
    -- How long a tool without a limit may be held elsewhere, and what is added to a limit.
    held_max interval, limit_grace interval,
    i_execution bigint[], i_expected bigint[], i_after bigint[], i_last bigint[],
    i_start_key bigint[], i_tenant text[],
    i_catalog bigint[], i_path text[], i_path_folded text[], i_playbook_version integer[],
    i_parent bigint[], i_status text[], i_version bigint[], i_terminal bigint[],
    i_started timestamptz[], i_updated timestamptz[], i_ended timestamptz[], i_error text[],
    i_entered bigint[], i_completed bigint[], i_failed bigint[], i_running bigint[],
    i_step text[],
    -- Smallest and largest event ID, whether each ID is above those before it, and the number of
    -- events that end the execution.
    i_least bigint[], i_most bigint[], i_is_rising boolean[], i_ends integer[],
    -- One row each. `a_newest` is the largest ID of the item so far, `a_until` the number of events
    -- in this and all earlier rows, and `e_event` has their IDs.
    a_execution bigint[], a_first bigint[], a_last bigint[], a_last_event bigint[],
    a_newest bigint[], a_until bigint[], a_at timestamp[], a_body text[],
    e_event bigint[],
    -- Events of reports that came with another ID.
    k_execution bigint[], k_id bigint[], k_seq bigint[],
    c_execution bigint[], c_id bigint[], c_issued bigint[], c_step text[], c_tool text[],
    c_attempt integer[], c_state text[], c_worker text[], c_claimed timestamptz[],
    c_started timestamptz[], c_ended timestamptz[], c_created timestamptz[],
    c_pool text[], c_limit bigint[], c_lease interval[], c_named boolean[],
    m_execution bigint[], m_id bigint[], m_state text[], m_stage smallint[], m_worker text[],
    m_ended timestamptz[], m_at timestamptz[], m_lease interval[], m_named boolean[],
    -- Which change of its command it is: one statement changes a row once.
    m_turn smallint[],
    r_execution bigint[], r_id bigint[],
    d_execution bigint[], d_id bigint[], d_kind text[], d_target bigint[], d_at timestamptz[],
    d_payload text[],
    x_execution bigint[], x_id bigint[],
    o_execution bigint[], o_event bigint[], o_tenant text[], o_subject text[], o_body text[],
    o_codec text,
    b_execution bigint[], b_digest bytea[]
) returns table (execution_id bigint, outcome smallint, found bigint)
language plpgsql
-- Plans are made once per connection, often while the tables are still empty; every row here is
-- found by its key, whatever they hold by then. A condition that is the one of a partial index is
-- written as a case, which the planner does not see through: it would go over that whole index.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    kept bigint[];
    started bigint[];
    is_all boolean;
    newest bigint;
    base bigint;
    -- Executions with an ID that is not above all earlier ones of its log, and the largest ID of
    -- each log before. There are few.
    late bigint[];
    late_newest bigint[];
    ended bigint[];
    one record;
begin
    with moved as (
        update noetl.execution e set
            status = i.status, version = i.version, updated_at = i.updated,
            end_time = i.ended, error = i.error, steps_entered = i.entered,
            steps_completed = i.completed, steps_failed = i.failed,
            steps_running = i.running, current_step = i.step, last_event_id = i.last,
            terminal_event_id = coalesce(e.terminal_event_id, i.terminal),
            newest_event_id = greatest(i.newest, i.most)
        from (
            -- The version is compared with this row as well, so that `newest` is of that version.
            select
                i.*, o.terminal_event_id is not null as is_over,
                coalesce(o.newest_event_id, (
                    select r.event_id from noetl.event_row r
                    where r.execution_id = o.execution_id
                    order by r.event_id desc limit 1
                )) as newest
            from unnest(
                i_execution, i_expected, i_after, i_last, i_start_key, i_status, i_version,
                i_terminal, i_updated, i_ended, i_error, i_entered, i_completed, i_failed,
                i_running, i_step, i_least, i_most, i_is_rising, i_ends
            ) i (
                execution_id, expected, after, last, start_key, status, version,
                terminal, updated, ended, error, entered, completed, failed,
                running, step, least, most, is_rising, ends
            )
            join noetl.execution o on o.execution_id = i.execution_id and o.version = i.expected
            where i.start_key is null
            order by i.execution_id
        ) i
        where e.execution_id = i.execution_id and e.version = i.expected
            and e.last_event_id = i.after and e.origin = 'own'
        returning e.execution_id, i.newest, i.ends + i.is_over::integer > 1 as is_ended,
            not i.is_rising or i.least <= i.newest as is_late
    )
    select
        array_agg(m.execution_id), array_agg(m.execution_id) filter (where m.is_late),
        array_agg(m.newest) filter (where m.is_late),
        array_agg(m.execution_id) filter (where m.is_ended)
    into kept, late, late_newest, ended
    from moved m;

    if cardinality(array_remove(i_start_key, null)) > 0 then
        with made as (
            insert into noetl.execution (
                execution_id, tenant_id, catalog_id, parent_execution_id, status, start_time,
                updated_at, end_time, error, path, path_folded, playbook_version, start_key,
                version, terminal_event_id, steps_entered, steps_completed, steps_failed,
                steps_running, current_step, last_event_id, newest_event_id, origin
            )
            select
                i.execution_id, i.tenant_id, i.catalog_id, i.parent, i.status, i.started,
                i.updated, i.ended, i.error, i.path, i.path_folded, i.playbook_version,
                i.start_key, i.version, i.terminal, i.entered, i.completed, i.failed, i.running,
                i.step, i.last, i.most, 'own'
            from unnest(
                i_execution, i_last, i_start_key, i_tenant, i_catalog, i_path, i_path_folded,
                i_playbook_version, i_parent, i_status, i_version, i_terminal, i_started,
                i_updated, i_ended, i_error, i_entered, i_completed, i_failed, i_running, i_step,
                i_most
            ) i (
                execution_id, last, start_key, tenant_id, catalog_id, path, path_folded,
                playbook_version, parent, status, version, terminal, started,
                updated, ended, error, entered, completed, failed, running, step,
                most
            )
            where i.start_key is not null
            order by i.execution_id
            on conflict (execution_id) do nothing
            returning execution_id
        )
        select array_agg(m.execution_id) into started from made m;
        kept := kept || started;
        if not (true = all (i_is_rising)) or 1 < any (i_ends) then
            select
                late || array_agg(i.execution_id) filter (where not i.is_rising),
                late_newest || array_agg(null::bigint) filter (where not i.is_rising),
                ended || array_agg(i.execution_id) filter (where i.ends > 1)
            into late, late_newest, ended
            from unnest(i_execution, i_is_rising, i_ends) i (execution_id, is_rising, ends)
            where i.execution_id = any (started);
        end if;
    end if;

    if ended is not null then
        raise unique_violation using
            message = format('execution %s ended already', ended[1]), constraint = 'execution_end';
    end if;

    if kept is not null then
        -- Nearly always; then nothing is looked up among them row by row.
        is_all := cardinality(kept) = cardinality(i_execution);
        select max(i.most) into newest
        from unnest(i_execution, i_most) i (execution_id, most)
        where is_all or i.execution_id = any (kept);

        -- Rows that are not kept leave gaps, which nobody minds: positions only have to grow.
        update noetl.lane l
        set position = l.position + cardinality(e_event),
            newest_event_id = greatest(l.newest_event_id, newest)
        where l.lane = on_lane
        returning l.position - cardinality(e_event) into strict base;

        insert into noetl.event_append (
            execution_id, first_seq, last_seq, last_event_id, newest_event_id, created_at, lane,
            position, body
        )
        select
            a.execution_id, a.first, a.last, a.last_event,
            nullif(
                case
                    when late is null then a.newest
                    else greatest(a.newest, late_newest[array_position(late, a.execution_id)])
                end,
                a.last_event
            ),
            a.at, on_lane, base + a.until, a.body
        from unnest(
            a_execution, a_first, a_last, a_last_event, a_newest, a_until, a_at, a_body
        ) a (execution_id, first, last, last_event, newest, until, at, body)
        where is_all or a.execution_id = any (kept);

        if late is not null then
            for one in
                select e.execution_id, e.id, e.seq
                from (
                    select
                        a.execution_id, u.id, a.first + u.number - 1 as seq,
                        greatest(
                            late_newest[array_position(late, a.execution_id)],
                            max(u.id) over (
                                partition by a.execution_id order by a.first, u.number
                                rows between unbounded preceding and 1 preceding
                            )
                        ) as newest
                    from unnest(a_execution, a_first, a_last, a_until) a (
                        execution_id, first, last, until
                    )
                    cross join lateral unnest(e_event[a.until - a.last + a.first : a.until])
                        with ordinality u (id, number)
                    where a.execution_id = any (late)
                ) e
                where e.id <= e.newest
                order by e.execution_id, e.seq
            loop
                perform noetl.event_lookup_add_1(one.execution_id, one.id, one.seq);
            end loop;
        end if;

        if cardinality(k_id) > 0 then
            insert into noetl.event_lookup (execution_id, id, is_key, seq)
            select k.execution_id, k.id, true, k.seq
            from unnest(k_execution, k_id, k_seq) with ordinality k (execution_id, id, seq, place)
            where is_all or k.execution_id = any (kept)
            order by k.place
            on conflict (execution_id, id, is_key) do nothing;
        end if;

        if cardinality(c_id) > 0 then
            insert into noetl.command (
                command_id, event_id, execution_id, step_name, tool_kind, status, worker_id,
                claimed_at, started_at, completed_at, attempt, created_at, updated_at, issued_seq,
                pool, limit_ms, lease_until, lease_max
            )
            select
                c.id, c.id, c.execution_id, c.step, c.tool, c.state, c.worker,
                c.claimed, c.started, c.ended, c.attempt, c.created, c.created, c.issued,
                c.pool, c.limit_ms,
                -- One whose holder names what it holds is bounded by nothing else.
                case
                    when c.lease is null or c.named then now() + c.lease
                    else now() + least(
                        c.lease,
                        coalesce(c.limit_ms * interval '1 millisecond' + limit_grace, held_max)
                    )
                end,
                case when c.lease is not null and not c.named then
                    now() + coalesce(c.limit_ms * interval '1 millisecond' + limit_grace, held_max)
                end
            from unnest(
                c_execution, c_id, c_issued, c_step, c_tool, c_attempt, c_state, c_worker,
                c_claimed, c_started, c_ended, c_created, c_pool, c_limit, c_lease, c_named
            ) c (
                execution_id, id, issued, step, tool, attempt, state, worker,
                claimed, started, ended, created, pool, limit_ms, lease, named
            )
            where is_all or c.execution_id = any (kept);
        end if;

        for nth in 1 .. coalesce((select max(t) from unnest(m_turn) t), 0) loop
            update noetl.command c set
                status = m.state, worker_id = coalesce(m.worker, c.worker_id),
                completed_at = m.ended, updated_at = m.at,
                claimed_at = case when m.stage = 1 then m.at else c.claimed_at end,
                started_at = case when m.stage = 2 then m.at else c.started_at end,
                lease_max = case
                    when m.lease is null or m.named then null
                    when c.lease_until is not null then c.lease_max
                    else now()
                        + coalesce(c.limit_ms * interval '1 millisecond' + limit_grace, held_max)
                end,
                -- One whose holder names what it holds stays as it is.
                lease_until = case
                    when m.lease is null or m.named then now() + m.lease
                    when c.lease_until is not null and c.lease_max is null then c.lease_until
                    else least(now() + m.lease, coalesce(c.lease_max, now()
                        + coalesce(c.limit_ms * interval '1 millisecond' + limit_grace, held_max)))
                end
            from unnest(
                m_execution, m_id, m_state, m_stage, m_worker, m_ended, m_at, m_lease, m_named,
                m_turn
            ) m (execution_id, id, state, stage, worker, ended, at, lease, named, turn)
            where c.event_id = m.id and m.turn = nth
                and (is_all or m.execution_id = any (kept))
                and case
                    when c.completed_at is not null or c.issued_seq is null then false
                    else case c.status when 'PENDING' then 0 when 'CLAIMED' then 1 else 2 end
                        < m.stage
                end;
        end loop;

        if cardinality(r_id) > 0 then
            update noetl.command c set lease_until = null, lease_max = null
            from unnest(r_execution, r_id) r (execution_id, id)
            where c.event_id = r.id and (is_all or r.execution_id = any (kept))
                and case when c.lease_until is null then false else true end;
        end if;

        -- Rows are added before any is removed, because an item may answer its own. Both go in id
        -- order, so that two appenders never wait for each other in a circle.
        if cardinality(d_id) > 0 then
            insert into noetl.due (
                id, tenant_id, execution_id, kind, target_id, due_at, payload, ready_at
            )
            select distinct on (d.id)
                d.id, e.tenant_id, d.execution_id, d.kind, d.target, d.at, d.payload::json, d.at
            from unnest(d_execution, d_id, d_kind, d_target, d_at, d_payload)
                with ordinality d (execution_id, id, kind, target, at, payload, place)
            join noetl.execution e on e.execution_id = d.execution_id
            where d.execution_id = any (kept)
            order by d.id, d.place
            on conflict (id) do nothing;
        end if;

        if cardinality(x_id) > 0 then
            delete from noetl.due d using (
                select id from noetl.due
                where id in (
                    select x.id from unnest(x_execution, x_id) x (execution_id, id)
                    where x.execution_id = any (kept)
                )
                order by id for update
            ) answered
            where d.id = answered.id;
        end if;

        if cardinality(o_event) > 0 then
            insert into noetl.outbox (
                execution_id, event_id, tenant_id, subject, body, payload_codec
            )
            select o.execution_id, o.event_id, o.tenant, o.subject, o.body, o_codec
            from unnest(o_execution, o_event, o_tenant, o_subject, o_body)
                with ordinality o (execution_id, event_id, tenant, subject, body, place)
            where is_all or o.execution_id = any (kept)
            order by o.place
            on conflict (execution_id, event_id) do nothing;
        end if;

        if cardinality(b_digest) > 0 then
            insert into noetl.blob_ref (execution_id, digest, tenant_id)
            select b.execution_id, b.digest, e.tenant_id
            from unnest(b_execution, b_digest) b (execution_id, digest)
            join noetl.execution e on e.execution_id = b.execution_id
            where b.execution_id = any (kept)
            order by b.execution_id, b.digest
            on conflict (execution_id, digest) do nothing;
        end if;

        if wake is not null then
            perform pg_notify('noetl', wake);
        end if;
    end if;

    if kept is not null and cardinality(kept) = cardinality(i_execution) then
        return;
    end if;

    -- What was not kept, and why: 1 repeated, 2 taken, 3 the log is elsewhere.
    return query
    select
        i.execution_id,
        (case
            when i.start_key is null then 3
            when e.start_key = i.start_key and e.tenant_id = i.tenant then 1
            else 2
        end)::smallint,
        coalesce(e.version, 0)
    from unnest(i_execution, i_start_key, i_tenant) i (execution_id, start_key, tenant)
    left join noetl.execution e on e.execution_id = i.execution_id
    where kept is null or i.execution_id <> all (kept);
end
$$;

-- Finds the first append whose log has an event ID of this one or above by then: if the event has an
-- ID above all earlier ones of its log, it is in this append. Returns where the append begins, or null
-- if the ID is above all of the log. Each `order by` names the index to read; `between` finds one
-- value, because a column that equals a value has no order.
create or replace function noetl.append_find_1(of_execution bigint, wanted bigint) returns bigint
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    low bigint;
    high bigint;
    middle bigint;
    found_seq bigint;
    newest bigint;
begin
    -- Mostly the ID is above all of the log.
    select a.first_seq, coalesce(a.newest_event_id, a.last_event_id) into high, newest
    from noetl.event_append a
    where a.execution_id = of_execution
    order by a.first_seq desc limit 1;
    if newest is null or newest < wanted then
        return null;
    end if;
    select a.first_seq into low
    from noetl.event_append a
    where a.execution_id = of_execution
    order by a.first_seq limit 1;
    while low < high loop
        middle := low + (high - low) / 2;
        select a.first_seq, coalesce(a.newest_event_id, a.last_event_id) into found_seq, newest
        from noetl.event_append a
        where a.execution_id = of_execution and a.first_seq <= middle
        order by a.first_seq desc limit 1;
        if newest >= wanted then
            high := found_seq;
        else
            select a.first_seq into low
            from noetl.event_append a
            where a.execution_id = of_execution and a.first_seq > middle
            order by a.first_seq limit 1;
        end if;
    end loop;
    return high;
end
$$;

-- Looks for an event that has this ID or came with it: among rows and entries, whose smallest
-- sequence number it returns, and by halving, for which it returns the append that can have it.
create or replace function noetl.event_find_2(of_execution bigint, wanted bigint)
returns table (
    seq bigint, first_seq bigint, last_seq bigint, last_event_id bigint, created_at timestamp,
    body text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    found_seq bigint := noetl.append_find_1(of_execution, wanted);
begin
    return query
    select f.seq, a.first_seq, a.last_seq, a.last_event_id, a.created_at, a.body
    from (
        select min(u.seq) as seq
        from (
            (
                select e.seq from noetl.event_row e
                where e.execution_id = of_execution and e.event_id between wanted and wanted
                order by e.event_id
            )
            union all
            (
                select e.seq from noetl.event_row e
                where e.execution_id = of_execution
                    and e.idempotency_key between wanted::text and wanted::text
                order by e.idempotency_key
            )
            union all
            (
                select l.seq from noetl.event_lookup l
                where l.execution_id = of_execution and l.id between wanted and wanted
                order by l.id
            )
        ) u
    ) f
    left join lateral (
        select * from noetl.event_append a
        where a.execution_id = of_execution and a.first_seq between found_seq and found_seq
        order by a.first_seq
    ) a on true;
end
$$;

-- Returns those of the IDs that a row or an entry of a log has, and the appends that can have others.
-- IDs that reports came with count only with `with_keys`.
create or replace function noetl.event_find_many_2(
    of_execution bigint, wanted bigint[], with_keys boolean
) returns table (
    event_id bigint, first_seq bigint, last_seq bigint, last_event_id bigint, created_at timestamp,
    body text
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    one bigint;
    found_seq bigint;
    newest bigint;
begin
    return query
    select i.event_id, null::bigint, null::bigint, null::bigint, null::timestamp, null::text
    from unnest(wanted) i (event_id)
    where coalesce(
        (
            select true from noetl.event_row e
            where e.execution_id = of_execution and e.event_id between i.event_id and i.event_id
            order by e.event_id limit 1
        ),
        (
            select true from noetl.event_lookup l
            where l.execution_id = of_execution and l.id between i.event_id and i.event_id
                and (with_keys or not l.is_key)
            order by l.id limit 1
        ),
        case when with_keys then (
            select true from noetl.event_row e
            where e.execution_id = of_execution
                and e.idempotency_key between i.event_id::text and i.event_id::text
            order by e.idempotency_key limit 1
        ) end,
        false
    );
    for one in select i.event_id from unnest(wanted) i (event_id) order by i.event_id loop
        -- It would be in the append that was returned before.
        continue when one <= newest;
        found_seq := noetl.append_find_1(of_execution, one);
        exit when found_seq is null;
        select coalesce(a.newest_event_id, a.last_event_id) into newest
        from noetl.event_append a
        where a.execution_id = of_execution and a.first_seq between found_seq and found_seq
        order by a.first_seq;
        return query
        select null::bigint, a.first_seq, a.last_seq, a.last_event_id, a.created_at, a.body
        from noetl.event_append a
        where a.execution_id = of_execution and a.first_seq between found_seq and found_seq
        order by a.first_seq;
    end loop;
end
$$;

-- Adds the entry of an event whose append is stored and whose ID is not above all earlier ones of its
-- log. Fails if another event of the log has the ID.
create or replace function noetl.event_lookup_add_1(of_execution bigint, of_id bigint, of_seq bigint)
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    found_seq bigint := noetl.append_find_1(of_execution, of_id);
begin
    if exists (
        select from noetl.event_row r where r.execution_id = of_execution and r.event_id = of_id
    ) or exists (
        -- Mostly the append is a small one.
        select from noetl.event_append a
        cross join lateral noetl.event_elements_1(a.body) u
        where a.execution_id = of_execution and a.first_seq = found_seq
            and a.first_seq + u.number - 1 < of_seq
            and noetl.event_relative_1(a.last_event_id, u.element -> 2) = of_id
    ) then
        raise unique_violation using
            message = format('execution %s has an event %s already', of_execution, of_id),
            table = 'event_lookup', constraint = 'event_lookup_pkey';
    end if;
    insert into noetl.event_lookup (execution_id, id, is_key, seq)
    values (of_execution, of_id, false, of_seq);
end
$$;

-- Lists commands of a pool that wait for a worker, oldest first: of one tenant, with one of these
-- tools, and not of an execution, each when it is given.
create or replace function noetl.command_pending_1(
    of_pool text, of_tenant text, with_tools text[], not_of bigint, at_most bigint
) returns table (
    event_id bigint, execution_id bigint, issued_seq bigint, step_name text, tool_kind text,
    attempt integer, pool text, limit_ms bigint, status text, worker_id text,
    created_at timestamptz, completed_at timestamptz
)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select c.event_id, c.execution_id, c.issued_seq, c.step_name::text, c.tool_kind::text, c.attempt,
        c.pool, c.limit_ms, c.status::text, c.worker_id::text, c.created_at, c.completed_at
    from noetl.command c
    where c.status = 'PENDING' and c.issued_seq is not null
        and c.pool = of_pool
        and (of_tenant is null or of_tenant = (
            select e.tenant_id from noetl.execution e
            where e.execution_id between c.execution_id and c.execution_id order by e.execution_id
        ))
        and (with_tools is null or c.tool_kind = any (with_tools))
        and (not_of is null or c.execution_id <> not_of)
    order by c.event_id limit at_most;
end
$$;

-- Adds the next version of a path. Whoever registers the same path at the same time waits.
create or replace function noetl.catalog_register_1(
    tenant text, new_id bigint, new_path text, new_kind text, new_content text,
    new_layout text, new_payload text, new_meta text, at timestamp
) returns integer
language plpgsql as $$
declare
    number integer;
begin
    perform pg_advisory_xact_lock(hashtextextended('noetl.catalog/' || tenant || '/' || new_path, 0));
    select coalesce(max(c.version), 0) + 1 into number
    from noetl.catalog c where c.tenant_id = tenant and c.path = new_path;
    insert into noetl.catalog (
        catalog_id, tenant_id, path, version, kind, content, layout, payload, meta, created_at
    ) values (
        new_id, tenant, new_path, number, new_kind, new_content,
        new_layout::json, new_payload::json, new_meta::json, at
    );
    return number;
end
$$;

-- Moves a subscription from one state to another. No row when it is not in that state, or when its
-- path has another by now that is not deactivated, be it one that comes at this very moment.
create or replace function noetl.subscription_move_1(
    of_id bigint, of_tenant text, from_state text, to_state text, event_type text
) returns setof noetl.subscription
language plpgsql as $$
begin
    return query
    update noetl.subscription s
    set state = to_state, last_event_type = event_type, updated_at = now()
    where s.id = of_id and s.tenant_id = of_tenant and s.state = from_state
    returning s.*;
exception when unique_violation then
    return;
end
$$;

-- A message's key as it is stored: an index entry is small, a key that others chose may not be.
create or replace function noetl.dedup_key_1(key text) returns text
language sql immutable as $$
    select case
        when octet_length(key) <= 1000 then key
        else 'sha256:' || encode(sha256(convert_to(key, 'UTF8')), 'hex')
    end
$$;

-- Claims a message for an execution, unless a claim that is younger than the window is there; says
-- whose it is. A claim may go between two looks, so it looks until it has seen one or made one.
create or replace function noetl.subscription_reserve_1(
    tenant text, subscription bigint, key text, execution bigint, time_window interval
) returns table (is_new boolean, execution_id bigint)
language plpgsql as $$
#variable_conflict use_column
begin
    loop
        return query
        insert into noetl.subscription_dedup as d (
            tenant_id, subscription_id, dedup_key, execution_id, seen_at
        ) values (tenant, subscription, noetl.dedup_key_1(key), execution, now())
        on conflict (tenant_id, subscription_id, dedup_key) do update
        set execution_id = excluded.execution_id, seen_at = excluded.seen_at
        where d.seen_at <= now() - time_window
        returning true, d.execution_id;
        exit when found;
        return query
        select false, d.execution_id from noetl.subscription_dedup d
        where d.tenant_id = tenant and d.subscription_id = subscription
            and d.dedup_key = noetl.dedup_key_1(key);
        exit when found;
    end loop;
end
$$;

-- The bounds of a table's partitions; nulls stand for no bound. The default one is not among them.
create or replace function noetl.event_bounds_2(of_table regclass default 'noetl.event_append')
returns table (partition text, lower_bound bigint, upper_bound bigint)
language sql stable as $$
    select
        c.relname::text,
        nullif(substring(b.bound from 'FROM \(''?(-?[0-9]+|MINVALUE)''?\)'), 'MINVALUE')::bigint,
        nullif(substring(b.bound from 'TO \(''?(-?[0-9]+|MAXVALUE)''?\)'), 'MAXVALUE')::bigint
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    cross join lateral (select pg_get_expr(c.relpartbound, c.oid) as bound) b
    where i.inhparent = of_table and b.bound <> 'DEFAULT'
$$;

-- Returns the name of a partition for the ids before this one, which is the first of a quarter.
create or replace function noetl.event_before_name_2(end_id bigint) returns text
language sql immutable as $$
    select format('event_append_before_%s_q%s', extract(year from at), extract(quarter from at))
    from (
        select to_timestamp(((end_id >> 22) + 1704067200000) / 1000.0) at time zone 'utc' as at
    ) quarter
$$;

-- Makes the log's partitions for the quarter of `at` and the four after it, where no partition is
-- yet, and one for everything before when there is none. Returns the names of the new ones. The old
-- table of rows needs none, because it gets no rows.
create or replace function noetl.event_partitions_ahead_2(at timestamptz)
returns setof text
language plpgsql as $$
declare
    epoch constant bigint := 1704067200000;
    quarter timestamp := date_trunc('quarter', at at time zone 'utc');
    first_id bigint;
    end_id bigint;
    taken record;
    name text;
begin
    first_id := greatest(((extract(epoch from quarter) * 1000)::bigint - epoch), 0) << 22;
    if not exists (select from noetl.event_bounds_2() b where b.lower_bound is null) then
        end_id := coalesce((select min(b.lower_bound) from noetl.event_bounds_2() b), first_id);
        name := noetl.event_before_name_2(end_id);
        return next noetl.event_partition_make_2(name, -9223372036854775808, end_id);
    end if;
    for step in 0..4 loop
        end_id := greatest(
            (extract(epoch from quarter + interval '3 months') * 1000)::bigint - epoch, 0
        ) << 22;
        name := format('event_append_%s_q%s', extract(year from quarter), extract(quarter from quarter));
        for taken in
            select coalesce(b.lower_bound, -9223372036854775808) as lower_bound,
                coalesce(b.upper_bound, 9223372036854775807) as upper_bound
            from noetl.event_bounds_2() b
            where coalesce(b.lower_bound, -9223372036854775808) < end_id
                and coalesce(b.upper_bound, 9223372036854775807) > first_id
            order by 1
        loop
            if taken.lower_bound > first_id then
                return next noetl.event_partition_make_2(name, first_id, taken.lower_bound);
            end if;
            first_id := greatest(first_id, taken.upper_bound);
        end loop;
        if first_id < end_id then
            return next noetl.event_partition_make_2(name, first_id, end_id);
        end if;
        first_id := end_id;
        quarter := quarter + interval '3 months';
    end loop;
end
$$;

-- Makes a partition for the ids from the first to before the end; the smallest number there is stands
-- for no bound. Returns its name, which is another if the one that is wanted is taken.
create or replace function noetl.event_partition_make_2(wanted text, first_id bigint, end_id bigint)
returns text
language plpgsql as $$
declare
    -- More than this would keep writers from the default partition for too long.
    strays_max constant integer := 100000;
    first_text constant text :=
        case when first_id = -9223372036854775808 then 'minvalue' else first_id::text end;
    name text := wanted;
    number integer := 1;
    strays bigint;
begin
    while to_regclass('noetl.' || quote_ident(name)) is not null loop
        number := number + 1;
        name := wanted || '_' || number;
    end loop;
    begin
        execute format(
            'create table noetl.%I partition of noetl.event_append for values from (%s) to (%s)',
            name, first_text, end_id
        );
        return name;
    exception when check_violation then
        -- Rows of this range came before their partition, as imported ones do, and are in the
        -- default partition. They move, and nobody writes there meanwhile.
        null;
    end;
    execute 'lock table noetl.event_append_default in access exclusive mode';
    select count(*) into strays
    from (
        select from noetl.event_append_default d
        where d.execution_id >= first_id and d.execution_id < end_id
        limit strays_max + 1
    ) s;
    if strays > strays_max then
        raise warning 'no partition %: the default partition holds too many rows of its range', name;
        return null;
    end if;
    execute format('create table noetl.%I (like noetl.event_append including all)', name);
    execute format(
        'with moved as (
             delete from noetl.event_append
             where execution_id >= %s and execution_id < %s returning *
         )
         insert into noetl.%I select * from moved',
        first_id, end_id, name
    );
    execute format(
        'alter table noetl.event_append attach partition noetl.%I for values from (%s) to (%s)',
        name, first_text, end_id
    );
    return name;
end
$$;

-- Lists the next executions of an adopted log, and notes how far it came. They are imported: kept
-- and shown, never driven. Returns how many it looked at; none when all are done.
create or replace function noetl.adopt_executions_1(at_most integer)
returns integer
language plpgsql as $$
declare
    batch bigint[];
    start bigint;
begin
    select a.after_execution into start
    from noetl.adoption a where a.id = 1 and not a.is_done for update;
    if not found then
        return 0;
    end if;
    with recursive next_id (execution_id, n) as (
        (select e.execution_id, 1 from noetl.event_row e
         where e.execution_id > start order by e.execution_id limit 1)
        union all
        select (select e.execution_id from noetl.event_row e
                where e.execution_id > next_id.execution_id order by e.execution_id limit 1), n + 1
        from next_id where n < at_most and next_id.execution_id is not null
    )
    select array_agg(execution_id order by execution_id) into batch
    from next_id where execution_id is not null;
    if batch is null then
        update noetl.adoption set is_done = true where id = 1;
        return 0;
    end if;
    insert into noetl.execution (
        execution_id, tenant_id, organization_id, catalog_id, parent_execution_id, status,
        start_time, updated_at, end_time, error, path, path_folded, playbook_version, version,
        last_event_id, terminal_event_id, steps_entered, steps_completed, steps_failed,
        steps_running, current_step, origin
    )
    select
        l.execution_id, l.tenant_id, l.organization_id, coalesce(l.catalog_id, 0), l.parent,
        coalesce(t.status, 'RUNNING'), l.started at time zone 'utc', l.updated at time zone 'utc',
        t.at at time zone 'utc', t.error, p.path, lower(p.path), coalesce(c.version, 0), l.events,
        l.last_id, t.event_id, l.entered, l.completed, l.failed, 0, l.last_node, 'imported'
    from (
        select e.execution_id, min(e.tenant_id) as tenant_id,
            min(e.organization_id) as organization_id, max(e.catalog_id) as catalog_id,
            max(e.parent_execution_id) as parent, min(e.created_at) as started,
            max(e.created_at) as updated, count(*) as events, max(e.event_id) as last_id,
            count(distinct e.node_name) filter (
                where e.event_type in ('step.enter', 'step_enter', 'step_started')
            ) as entered,
            count(*) filter (where e.event_type = 'command.completed') as completed,
            count(*) filter (where e.event_type = 'command.failed') as failed,
            (array_agg(e.node_name order by e.event_id desc) filter (
                where e.event_type in ('step.enter', 'step_enter', 'step_started')
            ))[1] as last_node,
            (array_agg(e.node_name order by e.event_id) filter (
                where e.event_type in ('playbook.initialized', 'playbook_started', 'playbook.started')
            ))[1] as start_name,
            bool_or(e.event_type in (
                'playbook.initialized', 'playbook_started', 'playbook.started'
            )) as is_execution
        from noetl.event_row e
        where e.execution_id = any (batch) and e.origin = 'imported'
        group by e.execution_id
    ) l
    left join lateral (
        -- Of several ends the last one counts.
        select e.event_id, e.created_at as at, e.error,
            case
                when e.event_type in ('playbook.completed', 'playbook_completed') then 'COMPLETED'
                when e.event_type in ('playbook.failed', 'playbook_failed') then 'FAILED'
                else 'CANCELLED'
            end as status
        from noetl.event_row e
        where e.execution_id = l.execution_id and e.event_type in (
            'playbook.completed', 'playbook_completed', 'playbook.failed', 'playbook_failed',
            'playbook.cancelled', 'playbook_cancelled'
        )
        order by e.event_id desc limit 1
    ) t on true
    left join noetl.catalog c on c.catalog_id = l.catalog_id
    cross join lateral (select coalesce(c.path, l.start_name, '') as path) p
    where l.is_execution
    on conflict (execution_id) do nothing;
    update noetl.adoption set after_execution = batch[cardinality(batch)] where id = 1;
    return cardinality(batch);
end
$$;

-- Gives the rows of an imported execution their places in the log, in the order they were written.
-- Ids of the two families that an old log may hold cannot be compared, so times come first. The rows
-- are joined by a hash: looked up one by one, each could read the whole log.
create or replace function noetl.place_imported_1(wanted bigint)
returns bigint
language plpgsql
set enable_hashjoin = on
set enable_sort = on
set enable_nestloop = off
set enable_mergejoin = off
as $$
declare
    placed bigint;
begin
    perform 1 from noetl.execution e where e.execution_id = wanted for no key update;
    update noetl.event_row e set seq = n.seq
    from (
        select o.event_id,
            (select coalesce(max(seq), 0) from noetl.event_row where execution_id = wanted)
                + row_number() over (order by o.created_at, o.event_id) as seq
        from noetl.event_row o
        where o.execution_id = wanted and o.seq is null and o.origin = 'imported'
    ) n
    where e.execution_id = wanted and e.event_id = n.event_id;
    get diagnostics placed = row_count;
    return placed;
end
$$;

-- Drops partitions of the log whose ids all come before `first_kept` and that hold no row, except
-- those that are `kept`. Neighbors are replaced by one partition, so that a row of any age has one; a
-- single one that never held a row stays. A partition that is in use at the moment is left for the
-- next time. Returns the names of those that were dropped. A dry run changes nothing, and takes a
-- partition for empty if it holds nothing but rows of executions and subscriptions. Partitions of the
-- old table of rows go without a replacement.
create or replace function noetl.event_partitions_drop_3(
    first_kept bigint, kept text[], dry_run boolean
) returns setof text
language plpgsql as $$
declare
    old record;
    is_free boolean;
    names text[] := '{}';
    first_id bigint;
    end_id bigint;
    was_used boolean;
begin
    for old in
        select r.partition as name
        from noetl.event_bounds_2('noetl.event_row') r
        where r.upper_bound <= first_kept and not exists (
            select from noetl.event_bounds_2() b
            where b.partition = any (kept)
                and coalesce(b.lower_bound, -9223372036854775808) < r.upper_bound
                and coalesce(b.upper_bound, 9223372036854775807)
                    > coalesce(r.lower_bound, -9223372036854775808)
        )
        order by r.upper_bound
    loop
        if noetl.event_row_partition_drop_1(old.name, dry_run) then
            return next old.name;
        end if;
    end loop;
    for old in
        select b.partition as name, b.lower_bound, b.upper_bound,
            pg_relation_size(format('noetl.%I', b.partition)::regclass) > 0 as is_used
        from noetl.event_bounds_2() b
        where b.upper_bound <= first_kept
        union all
        -- Ends the last neighbors.
        select null, null, null, null
        order by upper_bound nulls last
    loop
        is_free := old.name is not null and old.name <> all (kept)
            and noetl.event_partition_is_free_2(old.name, dry_run);
        if cardinality(names) > 0 and (not is_free or old.lower_bound is distinct from end_id) then
            if cardinality(names) > 1 or was_used then
                return query
                select d.name from noetl.event_partitions_replace_2(names, first_id, end_id, dry_run)
                    d (name);
            end if;
            names := '{}';
        end if;
        if is_free then
            if cardinality(names) = 0 then
                first_id := old.lower_bound;
                was_used := false;
            end if;
            names := names || old.name;
            end_id := old.upper_bound;
            was_used := was_used or old.is_used;
        end if;
    end loop;
end
$$;

-- Drops an empty partition of the old table of rows. Returns false if it holds a row or is in use.
create or replace function noetl.event_row_partition_drop_1(name text, dry_run boolean)
returns boolean
language plpgsql as $$
begin
    if not noetl.event_partition_is_free_2(name, dry_run) then
        return false;
    end if;
    if not dry_run then
        lock table only noetl.event_row in access exclusive mode nowait;
        lock table noetl.event_default in access exclusive mode nowait;
        execute format('lock table noetl.%I in access exclusive mode nowait', name);
        if not noetl.event_partition_is_free_2(name, false) then
            return false;
        end if;
        execute format('drop table noetl.%I', name);
    end if;
    return true;
exception when lock_not_available then
    raise notice 'partition % is in use', name;
    return false;
end
$$;

-- Returns true if a partition holds no row, or in a dry run none but those of executions and
-- subscriptions.
create or replace function noetl.event_partition_is_free_2(name text, dry_run boolean) returns boolean
language plpgsql as $$
declare
    is_free boolean;
begin
    if dry_run then
        -- From one execution to the next, whatever their logs hold.
        execute format(
            'with recursive found (id) as (
                 (select e.execution_id from noetl.%1$I e order by e.execution_id limit 1)
                 union all
                 select (
                     select e.execution_id from noetl.%1$I e
                     where e.execution_id > f.id order by e.execution_id limit 1
                 )
                 from found f where f.id is not null
             )
             select not exists (
                 select from found f
                 where f.id is not null
                     and not exists (select from noetl.execution x where x.execution_id = f.id)
                     and not exists (select from noetl.subscription s where s.id = f.id)
             )',
            name
        ) into is_free;
    else
        execute format('select not exists (select from noetl.%I)', name) into is_free;
    end if;
    return is_free;
end
$$;

-- Replaces empty partitions, neighbors in the order of time, by one for all their ids. Returns the
-- names of those that were dropped: all or none.
create or replace function noetl.event_partitions_replace_2(
    names text[], first_id bigint, end_id bigint, dry_run boolean
) returns setof text
language plpgsql as $$
declare
    name text;
    wanted text := case cardinality(names)
        when 1 then names[1] else noetl.event_before_name_2(end_id)
    end;
begin
    if not dry_run then
        begin
            -- A drop locks the whole log; waiting for that would make everybody wait behind it.
            lock table only noetl.event_append in access exclusive mode nowait;
            lock table noetl.event_append_default in access exclusive mode nowait;
            foreach name in array names loop
                execute format('lock table noetl.%I in access exclusive mode nowait', name);
                if not noetl.event_partition_is_free_2(name, false) then
                    raise lock_not_available;
                end if;
                execute format('drop table noetl.%I', name);
            end loop;
            if noetl.event_partition_make_2(
                wanted, coalesce(first_id, -9223372036854775808), end_id
            ) is null then
                raise lock_not_available;
            end if;
        exception when lock_not_available then
            raise notice 'partitions % are in use', names;
            return;
        end;
    end if;
    return query select * from unnest(names);
end
$$;

-- Moves a subscription from one state to another, and its log one place on. No row when it is not in
-- that state, or when its path has another by now that is not deactivated, be it one that comes at
-- this very moment. Whoever is told of a row holds it until the transaction ends.
create or replace function noetl.subscription_move_2(
    of_id bigint, of_tenant text, from_state text, to_state text, event_type text, at timestamptz
) returns setof noetl.subscription
language plpgsql as $$
begin
    return query
    update noetl.subscription s
    set state = to_state, last_event_type = event_type, updated_at = at, version = s.version + 1
    where s.id = of_id and s.tenant_id = of_tenant and s.state = from_state
    returning s.*;
exception when unique_violation then
    return;
end
$$;

-- Adds an event to the log of a subscription, whose row the caller holds. The lane is held until the
-- commit, as an appender holds it.
create or replace function noetl.subscription_event_2(
    on_lane smallint, of_tenant text,
    e_execution bigint, e_seq bigint, e_event bigint, e_at timestamp, e_body text, e_key bigint,
    o_subject text, o_body text, o_codec text
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    place bigint;
    newest bigint := coalesce(
        (
            select coalesce(a.newest_event_id, a.last_event_id) from noetl.event_append a
            where a.execution_id = e_execution order by a.first_seq desc limit 1
        ),
        (
            select r.event_id from noetl.event_row r
            where r.execution_id = e_execution order by r.event_id desc limit 1
        )
    );
begin
    update noetl.lane l
    set position = l.position + 1, newest_event_id = greatest(l.newest_event_id, e_event)
    where l.lane = on_lane
    returning l.position into strict place;

    insert into noetl.event_append (
        execution_id, first_seq, last_seq, last_event_id, newest_event_id, created_at, lane,
        position, body
    ) values (
        e_execution, e_seq, e_seq, e_event, nullif(greatest(newest, e_event), e_event), e_at,
        on_lane, place, e_body
    );
    if e_event <= newest then
        perform noetl.event_lookup_add_1(e_execution, e_event, e_seq);
    end if;
    if e_key is not null then
        insert into noetl.event_lookup (execution_id, id, is_key, seq)
        values (e_execution, e_key, true, e_seq)
        on conflict (execution_id, id, is_key) do nothing;
    end if;

    if o_body is not null then
        insert into noetl.outbox (
            execution_id, event_id, tenant_id, subject, body, payload_codec
        ) values (e_execution, e_event, of_tenant, o_subject, o_body, o_codec)
        on conflict (execution_id, event_id) do nothing;
    end if;
end
$$;

-- Returns true if the first event of a body is imported.
create or replace function noetl.append_is_imported_1(body text) returns boolean
language sql immutable as $$
    select case when position('"o":"imported"' in body) = 0 then false else (
        select coalesce(u.element -> 4 ->> 'o', 'decided') = 'imported'
        from noetl.event_elements_1(body) u where u.number = 1
    ) end
$$;
