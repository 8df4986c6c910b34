-- Ends the leases of everything a worker holds. Rows are locked in id order, so that two callers never
-- wait for each other in a circle. An append locks in the order of its batch; a circle with one is
-- found by the server, and the statement is tried again.
update noetl.command c set lease_until = now(), lease_max = now()
from (
    select execution_id, command_id from noetl.command h
    where lease_until is not null
        and worker_id = $2
        and ($1::text is null or exists (
            select from noetl.execution e where e.execution_id = h.execution_id and e.tenant_id = $1
        ))
    order by command_id for update
) held
where c.execution_id = held.execution_id and c.command_id = held.command_id
