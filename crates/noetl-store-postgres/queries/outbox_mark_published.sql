-- Says once and for ever that rows are published; changes none that were.
update noetl.outbox
set status = 'PUBLISHED', published_at = now(), updated_at = now(), last_error = null
where outbox_id = any ($1) and status <> 'PUBLISHED'
