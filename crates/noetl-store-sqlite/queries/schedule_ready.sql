-- Enabled schedules whose next run is due, the longest due first.
select schedule_id, tenant_id, playbook_path, playbook_version, cron, interval_seconds, enabled, timezone,
    next_run_at, run_execution_id, last_run_at, last_status, input_payload, meta, created_at,
    updated_at
from schedule indexed by schedule_next
where enabled = 1 and next_run_at is not null and next_run_at <= ?1
order by next_run_at, schedule_id limit ?2
