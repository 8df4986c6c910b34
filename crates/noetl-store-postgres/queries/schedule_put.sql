-- Adds a schedule or replaces what is said of one; no row when it is another tenant's.
insert into noetl.schedule as s (
    schedule_id, tenant_id, playbook_path, playbook_version, cron, interval_seconds, enabled,
    timezone, next_run_at, input_payload, meta, created_at, updated_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::json, $11::json, now(), now())
on conflict (schedule_id) do update set
    playbook_path = excluded.playbook_path, playbook_version = excluded.playbook_version,
    cron = excluded.cron, interval_seconds = excluded.interval_seconds,
    enabled = excluded.enabled, timezone = excluded.timezone,
    run_execution_id = case
        when s.next_run_at is not distinct from excluded.next_run_at then s.run_execution_id
    end,
    next_run_at = excluded.next_run_at, input_payload = excluded.input_payload,
    meta = excluded.meta, updated_at = excluded.updated_at
where s.tenant_id = excluded.tenant_id
returning schedule_id, tenant_id, playbook_path, playbook_version, cron, interval_seconds, enabled,
    timezone, next_run_at::timestamptz, run_execution_id, last_run_at::timestamptz, last_status, input_payload::text,
    meta::text, created_at::timestamptz, updated_at::timestamptz
