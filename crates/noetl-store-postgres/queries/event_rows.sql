-- A stretch of one execution's log in the order of event ids, both bounds included: rows, up to where
-- their texts pass so many bytes, those that begin before that; the ids and places of entries; and, if
-- there is no row, the first appends that can have other events, up to the limit and to where their
-- bodies pass so many bytes. Rows of an adopted log that were never opened have no place yet. What
-- events were told is left out of rows: it may be large, and nobody reads it here.
with found as materialized (
    select noetl.append_find_1($1, $2) as seq
), placed as materialized (
    select execution_id, coalesce(seq, 0), event_id, created_at, origin, event_type, node_name,
        node_type, status, command_id, parent_execution_id, worker_id, null::text, result::text,
        meta::text, error, duration, idempotency_key,
        -- Rows of an adopted database never had the column, and no position either. Whose they are is
        -- said nowhere else if they make no execution.
        case when origin = 'imported' then coalesce(more, json_strip_nulls(json_build_object(
            'node_id', node_id, 'catalog_id', catalog_id, 'parent_event_id', parent_event_id,
            'prev_event_id', prev_event_id, 'stage_id', stage_id, 'frame_id', frame_id,
            'stack_trace', stack_trace, 'aggregate_id', aggregate_id, 'aggregate_type', aggregate_type,
            'organization_id', nullif(organization_id, 'default'),
            'tenant_id', case when position is null then nullif(tenant_id, 'default') end
        )))::text
            when origin = 'reported' then more::text end
    from (
        select n.*, coalesce(sum(
                coalesce(octet_length(n.result::text), 0) + coalesce(octet_length(n.meta::text), 0)
                + coalesce(octet_length(n.error), 0)
                + coalesce(octet_length(coalesce(n.more::text, n.stack_trace)), 0)
            ) over (order by n.event_id rows between unbounded preceding and 1 preceding), 0
        ) as bytes_before
        from (
            -- To measure a text is to unpack it, so what is packed far beyond the page is not. Packed
            -- it may be larger than its text, but never so many times.
            select e.*, coalesce(sum(
                    coalesce(pg_column_size(e.result), 0) + coalesce(pg_column_size(e.meta), 0)
                    + coalesce(pg_column_size(e.error), 0)
                    + coalesce(pg_column_size(e.more), pg_column_size(e.stack_trace), 0)
                ) over (order by e.event_id rows between unbounded preceding and 1 preceding), 0
            ) as packed_before
            from (
                select * from noetl.event_row
                where execution_id = $1 and event_id between $2 and $3
                    and ($4::timestamp is null or created_at <= $4)
                order by event_id limit $5
            ) e
        ) n
        where n.packed_before < $6::bigint * 8
    ) e
    where bytes_before < $6
    order by event_id
)
select p.*, null::bigint as last_seq, null::text as body from placed p
union all
(
    select l.execution_id, l.seq, l.id, null, null, null, null, null, null, null, null, null, null,
        null, null, null, null, null, null, null, null
    from noetl.event_lookup l
    where l.execution_id = $1 and l.id between $2 and $3 and not l.is_key
    order by l.id limit $5
)
union all
(
    select a.execution_id, a.first_seq, a.last_event_id, a.created_at, null, null, null, null, null,
        null, null, null, null, null, null, null, null, null, null, a.last_seq, a.body
    from (
        select n.*, sum(octet_length(n.body)) over (order by n.first_seq)
            - octet_length(n.body) as bytes_before
        from noetl.event_append n
        where n.execution_id = $1 and n.first_seq >= (select seq from found)
            and n.first_seq < $5 + (select seq from found)
        order by n.first_seq
    ) a
    where a.bytes_before < $6 and not exists (select from placed)
    order by a.first_seq
)
