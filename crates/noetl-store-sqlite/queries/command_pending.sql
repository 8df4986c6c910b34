-- Commands of a pool that wait for a worker, oldest first: of one tenant (?2), with one of these tools
-- (?3, a JSON list) and not of an execution (?4), each when it is given.
select id, execution_id, issued_seq, step, tool, attempt, pool, limit_ms, state, worker_id, issued_at,
    ended_at
from command indexed by command_pending
where state = 'PENDING'
    and pool = ?1
    and (?2 is null or exists (
        select 1 from execution e where e.id = command.execution_id and e.tenant_id = ?2
    ))
    and (?3 is null or tool in (select value from json_each(?3)))
    and (?4 is null or execution_id <> ?4)
order by id limit ?5
