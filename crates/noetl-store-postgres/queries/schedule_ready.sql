-- Enabled schedules whose next run is due, the longest due first.
select schedule_id, tenant_id, playbook_path, playbook_version, cron, interval_seconds, enabled,
    timezone, next_run_at::timestamptz, run_execution_id, last_run_at::timestamptz, last_status, input_payload::text,
    meta::text, created_at::timestamptz, updated_at::timestamptz
from noetl.schedule
where enabled and next_run_at is not null and next_run_at <= now()
order by next_run_at, schedule_id limit $1
