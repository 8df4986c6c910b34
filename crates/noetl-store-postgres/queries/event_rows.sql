-- A stretch of one execution's log in the order of event ids, both bounds included, up to where its
-- texts pass so many bytes: those rows that begin before that. Rows of an adopted log that were
-- never opened have no place yet. What events were told is left out: it may be large, and nobody
-- reads it here.
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
            select * from noetl.event
            where execution_id = $1 and event_id between $2 and $3
                and ($4::timestamp is null or created_at <= $4)
            order by event_id limit $5
        ) e
    ) n
    where n.packed_before < $6::bigint * 8
) e
where bytes_before < $6
order by event_id
