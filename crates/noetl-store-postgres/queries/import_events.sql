-- Adds rows from elsewhere at the end of their logs, in the lane whose positions were drawn.
insert into noetl.event (
    execution_id, seq, event_id, created_at, event_time, origin, event_type, node_name, node_type,
    status, command_id, parent_execution_id, worker_id, context, result, meta, error,
    idempotency_key, duration, tenant_id, more, node_id, catalog_id, parent_event_id,
    prev_event_id, stage_id, frame_id, stack_trace, aggregate_id, aggregate_type,
    organization_id, lane, position
)
select
    e.execution_id, e.seq, e.event_id, e.at, e.at at time zone 'utc', 'imported', e.event_type,
    e.node, e.node_type, e.status, e.command, e.parent, e.worker, e.context::json, e.result::json,
    e.meta::json, e.error, e.more ->> 'idempotency_key', e.duration, e.tenant, e.more,
    e.more ->> 'node_id', (e.more ->> 'catalog_id')::bigint, (e.more ->> 'parent_event_id')::bigint,
    (e.more ->> 'prev_event_id')::bigint, (e.more ->> 'stage_id')::bigint,
    (e.more ->> 'frame_id')::bigint, e.more ->> 'stack_trace', e.more ->> 'aggregate_id',
    e.more ->> 'aggregate_type', coalesce(e.more ->> 'organization_id', 'default'),
    $19, $20 + e.place
from unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::timestamp[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[],
    $15::text[], $16::double precision[], $17::text[], $18::json[]
) with ordinality e (
    execution_id, seq, event_id, at, event_type, node, node_type, status, command, parent, worker,
    context, result, meta, error, duration, tenant, more, place
)
