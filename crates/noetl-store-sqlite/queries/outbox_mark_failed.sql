-- Makes a row claimable again from a time on; changes no row when it is published.
update outbox set status = 'FAILED', available_at = ?3, last_error = ?4, updated_at = ?2
where outbox_id = ?1 and status <> 'PUBLISHED'
