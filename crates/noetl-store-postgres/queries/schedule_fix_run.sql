-- Fixes the execution of the run due at $3, once; no row when the next run is another.
update noetl.schedule set
    updated_at = case when run_execution_id is null then now() else updated_at end,
    run_execution_id = coalesce(run_execution_id, $4)
where schedule_id = $1 and tenant_id = $2 and enabled and next_run_at = $3
returning run_execution_id
