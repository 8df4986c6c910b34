-- Rows of a lane after a position, oldest first, up to where their JSON passes so many bytes: those
-- that begin before that. If there is none, the appends with the next events, up to where their bodies
-- pass so many bytes: no row comes after an append. Whoever appends holds the lane until it has
-- committed, so nothing comes later that belongs before one of these.
--
-- Each `order by` names the index to read; `between` finds one row, because a column that equals a
-- value has no order.
with placed as materialized (
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
        ))::text
            when e.origin = 'reported' then e.more::text end,
        e.position, coalesce(x.tenant_id, e.tenant_id) as tenant_id,
        coalesce(e.catalog_id, x.catalog_id) as catalog_id, coalesce(e.prev_event_id, (
            select p.event_id from noetl.event_row p
            where p.execution_id = e.execution_id and p.seq between e.seq - 1 and e.seq - 1
            order by p.seq
        ))
    from (
        select p.*, sum(p.bytes) over (order by p.position) - p.bytes as bytes_before
        from (
            select n.*, coalesce(octet_length(n.context::text), 0)
                + coalesce(octet_length(n.result::text), 0)
                + coalesce(octet_length(n.meta::text), 0) as bytes
            from noetl.event_row n
            where n.lane = $1 and n.position > $2
            order by n.position limit $3
        ) p
    ) e
    left join lateral (
        select o.tenant_id, o.catalog_id from noetl.execution o
        where o.execution_id between e.execution_id and e.execution_id
        order by o.execution_id
    ) x on true
    where e.bytes_before < $4
    order by e.position
)
select p.*, null::bigint as last_seq, null::text as body from placed p
union all
(
    select a.execution_id, a.first_seq, a.last_event_id, a.created_at, null, null, null, null, null,
        null, null, null, null, null, null, null, null, null, null,
        a.position, coalesce(x.tenant_id, s.tenant_id, 'default'),
        coalesce(x.catalog_id, s.catalog_id), coalesce(
            (
                select p.last_event_id from noetl.event_append p
                where p.execution_id = a.execution_id and p.first_seq < a.first_seq
                order by p.first_seq desc limit 1
            ),
            (
                select r.event_id from noetl.event_row r
                where r.execution_id = a.execution_id
                    and r.seq between a.first_seq - 1 and a.first_seq - 1
                order by r.seq
            )
        ),
        a.last_seq, a.body
    from (
        select p.*, sum(p.bytes) over (order by p.position) - p.bytes as bytes_before,
            sum(p.events) over (order by p.position) - p.events as events_before
        from (
            select n.*, octet_length(n.body) as bytes,
                -- The first one may have events that were read before.
                least(n.last_seq - n.first_seq + 1, n.position - $2) as events
            from noetl.event_append n
            where n.lane = $1 and n.position > $2
            order by n.position limit $3
        ) p
    ) a
    left join lateral (
        select o.tenant_id, o.catalog_id from noetl.execution o
        where o.execution_id between a.execution_id and a.execution_id
        order by o.execution_id
    ) x on true
    left join lateral (
        select o.tenant_id, o.catalog_id from noetl.subscription o
        where o.id between a.execution_id and a.execution_id
        order by o.id
    ) s on true
    where a.bytes_before < $4 and a.events_before < $3 and not exists (select from placed)
    order by a.position
)
