-- The place of the first event that came with this id, or that has it though ids before it are larger.
select seq from event_row indexed by event_late
where execution_id = ?1 and is_late = 1 and event_id = ?2
union all
select seq from event_row indexed by event_key where execution_id = ?1 and idempotency_key = ?2
order by seq limit 1
