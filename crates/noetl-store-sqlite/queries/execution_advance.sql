-- Moves an execution on from the version it was decided on, or changes no row when it is not there.
update execution set
    status = ?3, version = ?4, updated_at = ?5, ended_at = ?6, error = ?7, steps_entered = ?8,
    steps_completed = ?9, steps_failed = ?10, steps_running = ?11, current_step = ?12,
    last_event_id = ?13, newest_event_id = ?15
where id = ?1 and version = ?2 and last_event_id = ?14 and origin = 'own'
