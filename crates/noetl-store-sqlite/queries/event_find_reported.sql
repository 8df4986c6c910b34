-- The first place a reported event with this id has in this log.
select min(seq) from event indexed by event_reported
where execution_id = ?1 and event_id = ?2 and origin = 'reported'
