-- The smallest event id after a place, from the rows after it alone.
select min(event_id) from event indexed by event_place where execution_id = ?1 and seq > ?2
