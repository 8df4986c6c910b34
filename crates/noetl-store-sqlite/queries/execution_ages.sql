-- The columns that decide whether executions are purged, in ID order. An imported execution is never
-- live, because nothing drives it; earlier versions marked only its first event as imported.
select
    id,
    tenant_id,
    updated_at,
    ended_at is null and origin = 'own' and not exists (
        select 1 from event_row
        where execution_id = execution.id and append_rows is not null and seq = 1
            and origin = 'imported'
    ),
    exists (select 1 from due where execution_id = execution.id)
from execution
where id > ?1
order by id limit ?2
