-- The smallest of these IDs after a sequence number.
select min(id) from event_lookup where execution_id = ?1 and is_key = 0 and seq > ?2
