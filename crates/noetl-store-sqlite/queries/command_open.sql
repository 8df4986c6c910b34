-- Commands that are not terminal, above an id, oldest first, read from their own small index.
select id, execution_id, issued_seq, step, tool, attempt, pool, limit_ms, state, worker_id, issued_at,
    ended_at
from command indexed by command_open
where ended_at is null and id > ?1
order by id limit ?2
