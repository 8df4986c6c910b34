-- Commands of an execution that have a lease, by id, read from the index of leases.
select id, execution_id, issued_seq, step, tool, attempt, pool, limit_ms, state, worker_id, issued_at,
    ended_at
from command indexed by command_lease
where lease_until is not null and execution_id = ?1
order by id
