-- Adds a command, or changes no row when its id is taken.
insert into command (
    id, execution_id, issued_seq, step, tool, attempt, state, worker_id, issued_at, ended_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
on conflict (id) do nothing
