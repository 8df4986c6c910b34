-- One execution of one tenant.
select id, catalog_id, path, playbook_version, parent_id, status, version, started_at, updated_at,
    ended_at, error, steps_entered, steps_completed, steps_failed, steps_running, current_step
from execution
where id = ?1 and tenant_id = ?2
