-- Ends the leases of everything a worker holds.
update command set lease_until = ?3, lease_max = ?3
where lease_until is not null
    and worker_id = ?2
    and (?1 is null or exists (
        select 1 from execution e where e.id = command.execution_id and e.tenant_id = ?1
    ))
