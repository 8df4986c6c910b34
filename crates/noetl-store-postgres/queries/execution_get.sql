-- One execution of one tenant.
select execution_id, catalog_id, path, playbook_version, parent_execution_id, status, version,
    start_time, updated_at, end_time, error, steps_entered, steps_completed, steps_failed,
    steps_running, current_step
from noetl.execution
where execution_id = $1 and tenant_id = $2
