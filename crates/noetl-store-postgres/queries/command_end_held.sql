-- Ends the leases of everything a worker holds. Rows are locked in id order, so that two callers never
-- wait for each other in a circle. An append locks in the order of its batch; a circle with one is
-- found by the server, and the statement is tried again.
with held as materialized (
    select execution_id, command_id from noetl.command h
    where lease_until is not null
        and worker_id = $2
        and ($1::text is null or $1 = (
            select e.tenant_id from noetl.execution e
            where e.execution_id between h.execution_id and h.execution_id order by e.execution_id
        ))
    order by command_id for update
)
update noetl.command c set lease_until = now(), lease_max = now()
from held
where c.execution_id = held.execution_id and c.command_id = held.command_id
