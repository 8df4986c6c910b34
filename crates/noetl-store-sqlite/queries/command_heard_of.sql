-- Renews what a worker that is known by its name only has begun with, to the end of its limit at most.
update command set lease_until = min(?3, lease_max)
where lease_until is not null
    and worker_id = ?2
    and lease_max is not null
    and state = 'RUNNING'
    and (?1 is null or exists (
        select 1 from execution e where e.id = command.execution_id and e.tenant_id = ?1
    ))
