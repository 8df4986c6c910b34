-- Lets the leases of these commands end $3 from now at the latest, if their workers don't name them.
-- The statement locks rows in the order of their IDs, so that two callers never deadlock. A deadlock with
-- an append makes Postgres cancel one of the two, and the statement is tried again.
with held as materialized (
    select execution_id, command_id from noetl.command h
    where lease_until is not null
        and event_id = any ($2)
        and lease_max > now() + $3
        and ($1::text is null or $1 = (
            select e.tenant_id from noetl.execution e
            where e.execution_id between h.execution_id and h.execution_id order by e.execution_id
        ))
    order by command_id for update
)
update noetl.command c set
    lease_max = now() + $3,
    lease_until = least(c.lease_until, now() + $3)
from held
where c.execution_id = held.execution_id and c.command_id = held.command_id
returning c.lease_max
