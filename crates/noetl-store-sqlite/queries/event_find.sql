-- The place of the event that has this id in this log, or of the first that came with it.
select seq from event indexed by event_id where execution_id = ?1 and event_id = ?2
union all
select seq from event indexed by event_key where execution_id = ?1 and idempotency_key = ?2
order by seq limit 1
