-- Takes commands whose leases have ended; each comes again later unless it is over by then. What
-- another takes at the same time is passed over.
with taken as materialized (
    select execution_id, command_id, lease_until as ended from noetl.command
    where lease_until is not null and lease_until <= now()
    order by lease_until limit $1 for update skip locked
)
update noetl.command c set lease_until = now() + $2
from taken
where c.execution_id = taken.execution_id and c.command_id = taken.command_id
returning c.event_id, c.execution_id, c.issued_seq, c.step_name, c.tool_kind, c.attempt, c.pool,
    c.limit_ms, c.status, c.worker_id, c.created_at, c.completed_at, taken.ended
