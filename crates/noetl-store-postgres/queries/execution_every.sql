-- Executions of all tenants above an id, in id order; none that other programs left.
select execution_id, catalog_id, path, playbook_version, parent_execution_id, status, version,
    start_time, updated_at, end_time, error, steps_entered, steps_completed, steps_failed,
    steps_running, current_step, tenant_id
from noetl.execution
where execution_id > $1 and origin = 'own'
order by execution_id limit $2
