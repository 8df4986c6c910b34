-- A stretch of one execution's log, oldest first.
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
from noetl.event
where execution_id = $1 and seq > $2
order by seq limit $3
