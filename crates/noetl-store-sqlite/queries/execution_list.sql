-- Executions of a tenant, newest start first, of equal starts the larger id first.
select id, catalog_id, path, playbook_version, parent_id, status, version, started_at, updated_at,
    ended_at, error, steps_entered, steps_completed, steps_failed, steps_running, current_step
from execution indexed by execution_started
where tenant_id = ?1
    and (?2 is null or path_contains(path, ?2))
    and (?3 is null or catalog_id = ?3)
    and (?6 is null or started_at < ?6)
    and (?7 is null or started_at >= ?7)
    and (?8 is null or path_contains(path, ?8) or instr(cast(id as text), ?8) > 0
        or instr(coalesce(error, ''), ?8) > 0)
order by started_at desc, id desc
limit ?4 offset ?5
