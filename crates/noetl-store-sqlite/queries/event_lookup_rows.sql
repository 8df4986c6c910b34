-- The events of a log whose IDs are not above all earlier ones, in the order of their IDs.
select id, seq from event_lookup
where execution_id = ?1 and is_key = 0 and id >= ?2
order by id
