-- Moves an execution that goes on from the version it was decided on, or changes no row when it is not
-- there or was over. What its indexes are made of stays, so they are not written.
update execution set
    version = ?3, updated_at = ?4, error = ?5, steps_entered = ?6, steps_completed = ?7,
    steps_failed = ?8, steps_running = ?9, current_step = ?10, last_event_id = ?11,
    newest_event_id = ?13
where id = ?1 and version = ?2 and last_event_id = ?12 and origin = 'own'
    and status = 'RUNNING' and ended_at is null
