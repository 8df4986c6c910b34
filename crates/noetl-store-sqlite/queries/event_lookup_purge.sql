-- Removes entries of an execution that no longer exists.
delete from event_lookup
where (execution_id, id, is_key) in (
    select execution_id, id, is_key from event_lookup where execution_id = ?1 limit ?3
)
