-- The executions of an import as it finds them, held until it commits. The length of an adopted log
-- is told by its rows, which may have no places yet.
select
    e.execution_id, coalesce(e.catalog_id, 0), coalesce(e.path, ''), coalesce(e.playbook_version, 0),
    e.parent_execution_id, e.status, coalesce(e.version, 0), e.start_time, e.updated_at, e.end_time,
    e.error, coalesce(e.steps_entered, 0), coalesce(e.steps_completed, 0),
    coalesce(e.steps_failed, 0), coalesce(e.steps_running, 0), e.current_step, e.tenant_id,
    e.origin, e.terminal_event_id, nullif(e.last_event_id, 0),
    e.origin = 'imported' and coalesce((
        -- Not an `exists`, which has no order.
        select true from noetl.event_row v
        where v.execution_id = e.execution_id and v.seq is null
        order by v.seq limit 1
    ), false),
    coalesce(e.newest_event_id, (
        select r.event_id from noetl.event_row r
        where r.execution_id = e.execution_id
        order by r.event_id desc limit 1
    ))
from noetl.execution e
where e.execution_id = any ($1)
order by e.execution_id
for no key update
