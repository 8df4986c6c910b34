-- Commands whose leases have ended, longest ended first, read from their own small index.
select id, execution_id, issued_seq, step, tool, attempt, pool, limit_ms, state, worker_id, issued_at,
    ended_at
from command indexed by command_lease
where lease_until is not null and lease_until <= ?1
order by lease_until, id limit ?2
