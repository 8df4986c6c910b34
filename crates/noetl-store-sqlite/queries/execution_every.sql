-- Executions of all tenants above an id, in id order.
select id, catalog_id, path, playbook_version, parent_id, status, version, started_at, updated_at,
    ended_at, error, steps_entered, steps_completed, steps_failed, steps_running, current_step,
    tenant_id
from execution
where id > ?1
order by id limit ?2
