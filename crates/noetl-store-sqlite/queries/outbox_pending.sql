-- How many rows a claim could take; the condition is the claim's.
select count(*) from outbox indexed by outbox_open
where status <> 'PUBLISHED'
    and (case status when 'IN_FLIGHT' then locked_at <= ?2 else available_at <= ?1 end)
