-- Moves a command on to a later stage, and never back: changes no row when it already got there.
update command set state = ?2, worker_id = coalesce(?3, worker_id), ended_at = ?4
where id = ?1
    and ended_at is null
    and case state when 'PENDING' then 0 when 'CLAIMED' then 1 else 2 end < ?5
