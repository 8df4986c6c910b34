-- Moves on from the run due at $3; changes no row when the next run is another.
update noetl.schedule set
    next_run_at = $4, run_execution_id = null, last_run_at = $3, last_status = $5,
    updated_at = now()
where schedule_id = $1 and tenant_id = $2 and next_run_at = $3
