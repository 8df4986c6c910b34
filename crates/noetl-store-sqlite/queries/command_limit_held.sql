-- Lets leases end at ?3 at the latest, for workers that don't name the commands they hold: all commands
-- of worker ?2, or those of the JSON list ?4.
update command set lease_max = ?3, lease_until = min(lease_until, ?3)
where lease_until is not null
    and lease_max > ?3
    and (?2 is null or worker_id = ?2)
    and (?4 is null or id in (select value from json_each(?4)))
    and (?1 is null or exists (
        select 1 from execution e where e.id = command.execution_id and e.tenant_id = ?1
    ))
