-- Says once and for ever that a row is published; changes no row when it was.
update outbox set status = 'PUBLISHED', published_at = ?2, updated_at = ?2, last_error = null
where outbox_id = ?1 and status <> 'PUBLISHED'
