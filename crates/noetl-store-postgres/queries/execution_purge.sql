-- Removes executions with everything they have, except those that are live, were moved after $2,
-- or wait for a delivery; a row that moves meanwhile is looked at again. Counts by table.
with gone as (
    delete from noetl.execution e
    where e.execution_id = any ($1)
        and coalesce(e.updated_at, e.end_time, e.start_time, now()) <= $2
        and (e.end_time is not null or e.origin = 'imported' or exists (
            select from noetl.event_row first
            where first.execution_id = e.execution_id and first.seq = 1
                and first.origin = 'imported'
            union all
            select from noetl.event_append first
            where first.execution_id = e.execution_id and first.first_seq = 1
                and noetl.append_is_imported_1(first.body)
        ))
        and not exists (select from noetl.due d where d.execution_id = e.execution_id)
    returning e.execution_id, e.tenant_id
), event_rows as (
    delete from noetl.event_row t using gone
    where t.execution_id = gone.execution_id and t.execution_id = any ($1)
    returning 1
), appends as (
    delete from noetl.event_append t using gone
    where t.execution_id = gone.execution_id and t.execution_id = any ($1)
    returning t.last_seq - t.first_seq + 1 as events
), lookups as (
    delete from noetl.event_lookup t using gone
    where t.execution_id = gone.execution_id
), commands as (
    delete from noetl.command t using gone
    where t.execution_id = gone.execution_id
    returning 1
), snapshots as (
    delete from noetl.projection_snapshot t using gone
    where t.aggregate_id = gone.execution_id::text
        or t.aggregate_id like 'execution/' || gone.execution_id || '/_%'
    returning 1
), refs as (
    delete from noetl.blob_ref t using gone
    where t.execution_id = gone.execution_id
    returning 1
), variables as (
    delete from noetl.transient t using gone
    where t.tenant_id = gone.tenant_id and t.execution_id = gone.execution_id
    returning 1
), results as (
    delete from noetl.result_store t using gone
    where t.tenant_id = gone.tenant_id and t.execution_id = gone.execution_id
    returning 1
), secrets as (
    delete from noetl.keychain t using gone
    where t.tenant_id = gone.tenant_id and t.execution_id = gone.execution_id
        and t.scope_type = 'local'
    returning 1
), lines as (
    delete from noetl.log t using gone
    where t.execution_id = gone.execution_id
    returning 1
), line_counts as (
    delete from noetl.log_command t using gone
    where t.execution_id = gone.execution_id
), line_numbers as (
    delete from noetl.log_execution t using gone
    where t.execution_id = gone.execution_id
)
select
    (select coalesce(array_agg(execution_id), '{}') from gone),
    (select count(*) from event_rows) + (select coalesce(sum(events), 0)::bigint from appends),
    (select count(*) from commands),
    (select count(*) from snapshots),
    (select count(*) from refs),
    (select count(*) from variables),
    (select count(*) from results),
    (select count(*) from secrets),
    (select count(*) from lines)
