-- Rows another program wrote before the database was ours, which have no position: those with the
-- next event ids, oldest first, up to where their JSON passes so many bytes: those that begin before
-- that. Rows that share an id come together, and count from the first of them.
select e.execution_id, coalesce(e.seq, 0), e.event_id, e.created_at, e.origin, e.event_type,
    e.node_name, e.node_type, e.status, e.command_id, e.parent_execution_id, e.worker_id,
    e.context::text, e.result::text, e.meta::text, e.error, e.duration, e.idempotency_key,
    case when e.origin = 'imported' then coalesce(e.more, json_build_object(
        'node_id', e.node_id, 'catalog_id', e.catalog_id, 'parent_event_id', e.parent_event_id,
        'prev_event_id', e.prev_event_id, 'stage_id', e.stage_id, 'frame_id', e.frame_id,
        'current_index', e.current_index, 'current_item', e.current_item,
        'context_value', e.context_value, 'context_key', e.context_key,
        'stack_trace', e.stack_trace, 'distributed_state', e.distributed_state,
        'trace_component', e.trace_component, 'organization_id', e.organization_id,
        'stream_id', e.stream_id, 'stream_version', e.stream_version,
        'aggregate_id', e.aggregate_id, 'aggregate_type', e.aggregate_type,
        'schema_name', e.schema_name, 'schema_version', e.schema_version,
        'producer', e.producer, 'causation_id', e.causation_id,
        'correlation_id', e.correlation_id, 'idempotency_key', e.idempotency_key,
        'envelope_checksum', e.envelope_checksum, 'event_time', e.event_time,
        'ingest_time', e.ingest_time, 'payload_ref', e.payload_ref
    ))::text end,
    e.event_id, e.tenant_id, coalesce(e.catalog_id, x.catalog_id), e.prev_event_id
from (
    select p.*, sum(p.bytes) over (order by p.event_id)
        - sum(p.bytes) over (partition by p.event_id) as bytes_before
    from (
        select n.*, coalesce(octet_length(n.context::text), 0)
            + coalesce(octet_length(n.result::text), 0)
            + coalesce(octet_length(n.meta::text), 0) as bytes
        from noetl.event_row n
        where n.lane is null and n.event_id > $1 and n.event_id <= (
            select max(m.event_id) from (
                select a.event_id from noetl.event_row a
                where a.lane is null and a.event_id > $1
                order by a.event_id limit $2
            ) m
        )
        order by n.event_id
    ) p
) e
left join lateral (
    select o.tenant_id, o.catalog_id from noetl.execution o
    where o.execution_id between e.execution_id and e.execution_id
    order by o.execution_id
) x on true
where e.bytes_before < $3
order by e.event_id, e.execution_id
