-- Moves a command on to a later stage, and never back: changes no row when it already got there. Its
-- lease is until ?6 in the new state, or none; ?7 and ?8 are now and how long a tool without a limit
-- may be held, ?9 what is added to a limit. ?10 is whether its holder names what it holds from now on;
-- one whose holder does so already stays as it is.
update command set state = ?2, worker_id = coalesce(?3, worker_id), ended_at = ?4,
    lease_max = case
        when ?6 is null or ?10 then null
        when lease_until is not null then lease_max
        else ?7 + coalesce(limit_ms * 1000 + ?9, ?8)
    end,
    lease_until = case
        when ?6 is null or ?10 then ?6
        when lease_until is not null and lease_max is null then lease_until
        else min(?6, coalesce(lease_max, ?7 + coalesce(limit_ms * 1000 + ?9, ?8)))
    end
where id = ?1
    and ended_at is null
    and case state when 'PENDING' then 0 when 'CLAIMED' then 1 else 2 end < ?5
