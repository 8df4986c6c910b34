-- How many rows a claim could take; the condition is the claim's.
select count(*) from noetl.outbox
where status <> 'PUBLISHED'
    and case status
        when 'IN_FLIGHT' then locked_at is null or locked_at <= now() - $1
        else available_at <= now()
    end
