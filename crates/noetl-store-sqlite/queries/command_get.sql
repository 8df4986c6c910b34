-- One command.
select id, execution_id, issued_seq, step, tool, attempt, pool, limit_ms, state, worker_id, issued_at,
    ended_at
from command
where id = ?1
