-- Makes rows for executions that are not known, in id order so that two imports never wait for each
-- other in a circle.
insert into noetl.execution (
    execution_id, tenant_id, catalog_id, status, start_time, updated_at, path, path_folded,
    playbook_version, version, last_event_id, steps_entered, steps_completed, steps_failed,
    steps_running, origin
)
select i.execution_id, i.tenant_id, 0, 'RUNNING', i.at, i.at, '', '', 0, 0, 0, 0, 0, 0, 0, 'imported'
from unnest($1::bigint[], $2::text[], $3::timestamptz[]) i (execution_id, tenant_id, at)
where not exists (select from noetl.subscription s where s.id = i.execution_id)
order by i.execution_id
on conflict (execution_id) do nothing
