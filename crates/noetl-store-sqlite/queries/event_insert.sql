-- Adds an event at the end of the table. The caller has moved its execution's version past it, and
-- gives positions above all that were ever given.
insert into event (
    execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type, status,
    command_id, parent_execution_id, worker_id, meta, error, context, result, duration,
    idempotency_key, position, more, append_rows, is_late
) values (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22
)
