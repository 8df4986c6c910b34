-- Adds a command, or changes no row when its id is taken.
insert into command (
    id, execution_id, issued_seq, step, tool, attempt, pool, limit_ms, state, worker_id, issued_at,
    ended_at, lease_until, lease_max
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
on conflict (id) do nothing
