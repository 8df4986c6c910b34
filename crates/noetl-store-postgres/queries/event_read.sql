-- A stretch of one execution's log: rows, oldest first, and the appends after them that have the events
-- up to the limit. Sequence numbers have no gap, except where a log lost its beginning, so the appends
-- are a range of them. It begins with the append that the place is in.
with placed as materialized (
    select execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type, status,
        command_id, parent_execution_id, worker_id, context::text, result::text, meta::text, error,
        duration, idempotency_key,
        -- Rows of an adopted database never had the column.
        case when origin = 'imported' then coalesce(more, json_strip_nulls(json_build_object(
            'node_id', node_id, 'catalog_id', catalog_id, 'parent_event_id', parent_event_id,
            'prev_event_id', prev_event_id, 'stage_id', stage_id, 'frame_id', frame_id,
            'stack_trace', stack_trace, 'aggregate_id', aggregate_id, 'aggregate_type', aggregate_type,
            'organization_id', nullif(organization_id, 'default')
        )))::text
            when origin = 'reported' then more::text end
    from noetl.event_row
    where execution_id = $1 and seq > $2
    order by seq limit $3
)
select p.*, null::bigint as last_seq, null::text as body from placed p
union all
(
    select a.execution_id, a.first_seq, a.last_event_id, a.created_at, null, null, null, null, null,
        null, null, null, null, null, null, null, null, null, null, a.last_seq, a.body
    from noetl.event_append a
    where a.execution_id = $1 and a.last_seq > $2
        and a.first_seq >= coalesce((
            select c.first_seq from noetl.event_append c
            where c.execution_id = $1 and c.first_seq <= $2 order by c.first_seq desc limit 1
        ), $2)
        and a.first_seq <= $3 + greatest($2, (
            select n.first_seq - 1 from noetl.event_append n
            where n.execution_id = $1 and n.first_seq > $2 order by n.first_seq limit 1
        ))
    order by a.first_seq
)
