-- Adds events at the end of the table; a row of values for each follows. The caller has moved their
-- execution's version past them, and gives positions above all that were ever given.
insert into event (
    execution_id, seq, event_id, created_at, origin, event_type, node_name, node_type, status,
    command_id, parent_execution_id, worker_id, meta, error, context, result, duration,
    idempotency_key, position, more, append_rows, is_late
) values
