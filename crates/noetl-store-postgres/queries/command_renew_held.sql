-- Renews the leases of the commands that a worker holds; from now on only this does. What an
-- append is changing just now is passed over: it has a while left, and nobody waits in a circle.
with held as materialized (
    select execution_id, command_id from noetl.command h
    where lease_until is not null
        and worker_id = $2
        and event_id = any ($3)
        and ($1::text is null or $1 = (
            select e.tenant_id from noetl.execution e
            where e.execution_id between h.execution_id and h.execution_id order by e.execution_id
        ))
    order by command_id for update skip locked
)
update noetl.command c set lease_until = now() + $4, lease_max = null
from held
where c.execution_id = held.execution_id and c.command_id = held.command_id
returning c.event_id
