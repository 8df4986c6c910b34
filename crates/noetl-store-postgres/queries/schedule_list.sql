-- Every schedule of a tenant, in id order.
select schedule_id, tenant_id, playbook_path, playbook_version, cron, interval_seconds, enabled,
    timezone, next_run_at::timestamptz, run_execution_id, last_run_at::timestamptz, last_status, input_payload::text,
    meta::text, created_at::timestamptz, updated_at::timestamptz
from noetl.schedule
where tenant_id = $1
order by schedule_id
