-- Renews the leases of the commands of a JSON list that a worker holds; from now on only this does.
update command set lease_until = ?4, lease_max = null
where lease_until is not null
    and worker_id = ?2
    and id in (select value from json_each(?3))
    and (?1 is null or exists (
        select 1 from execution e where e.id = command.execution_id and e.tenant_id = ?1
    ))
returning id
