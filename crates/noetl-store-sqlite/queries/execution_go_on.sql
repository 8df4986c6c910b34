-- Moves an execution whose status and end stay as they are from the version it was decided on, or
-- changes no row. What its indexes are made of stays, so they are not written. Its values are those of
-- `execution_advance.sql`.
update execution set
    version = ?4, updated_at = ?5, error = ?7, steps_entered = ?8, steps_completed = ?9,
    steps_failed = ?10, steps_running = ?11, current_step = ?12, last_event_id = ?13,
    newest_event_id = ?15
where id = ?1 and version = ?2 and last_event_id = ?14 and origin = 'own'
    and status = ?3 and ended_at is ?6
