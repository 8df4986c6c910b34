-- One schedule of one tenant.
select schedule_id, tenant_id, playbook_path, playbook_version, cron, interval_seconds, enabled,
    timezone, next_run_at::timestamptz, run_execution_id, last_run_at::timestamptz, last_status, input_payload::text,
    meta::text, created_at::timestamptz, updated_at::timestamptz
from noetl.schedule
where schedule_id = $1 and tenant_id = $2
