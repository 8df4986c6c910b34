-- A stretch of one execution's log in the order of event ids, both bounds included. Rows of an
-- adopted log that were never opened have no place yet.
select execution_id, coalesce(seq, 0), event_id, created_at, origin, event_type, node_name,
    node_type, status, command_id, parent_execution_id, worker_id, context::text, result::text,
    meta::text, error, duration, idempotency_key,
    -- Rows of an adopted database never had the column, and no position either. Whose they are is
    -- said nowhere else if they make no execution.
    case when origin = 'imported' then coalesce(more, json_strip_nulls(json_build_object(
        'node_id', node_id, 'catalog_id', catalog_id, 'parent_event_id', parent_event_id,
        'prev_event_id', prev_event_id, 'stage_id', stage_id, 'frame_id', frame_id,
        'stack_trace', stack_trace, 'aggregate_id', aggregate_id, 'aggregate_type', aggregate_type,
        'organization_id', nullif(organization_id, 'default'),
        'tenant_id', case when position is null then nullif(tenant_id, 'default') end
    )))::text end
from noetl.event
where execution_id = $1 and event_id between $2 and $3
    and ($4::timestamp is null or created_at <= $4)
order by event_id limit $5
