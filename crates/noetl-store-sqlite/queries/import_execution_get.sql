-- An execution as an import finds it, whoever it belongs to.
select id, catalog_id, path, playbook_version, parent_id, status, version, started_at, updated_at,
    ended_at, error, steps_entered, steps_completed, steps_failed, steps_running, current_step,
    tenant_id, origin, terminal_event_id, last_event_id
from execution
where id = ?1
