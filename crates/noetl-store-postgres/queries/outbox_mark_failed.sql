-- Makes a row claimable again from a time on; changes no row when it is published.
update noetl.outbox
set status = 'FAILED', available_at = now() + $2, last_error = $3, published_at = null,
    updated_at = now()
where outbox_id = $1 and status <> 'PUBLISHED'
