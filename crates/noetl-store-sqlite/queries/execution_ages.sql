-- What decides whether executions go, in id order. One whose first event is imported was not
-- started here, so nothing moves it whether it has ended or not.
select
    id,
    tenant_id,
    updated_at,
    ended_at is null and not exists (
        select 1 from event
        where execution_id = execution.id and append_rows is not null and seq = 1
            and origin = 'imported'
    ),
    exists (select 1 from due where execution_id = execution.id)
from execution
where id > ?1
order by id limit ?2
