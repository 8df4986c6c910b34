-- The sequence number of the first event that has this ID or came with this key.
select min(seq) from event_lookup where execution_id = ?1 and id = ?2
