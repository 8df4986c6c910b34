-- Leaves the executions of an import as their rows make them.
update noetl.execution e set
    catalog_id = i.catalog_id, path = i.path, path_folded = i.path_folded,
    parent_execution_id = i.parent, status = i.status, version = i.version,
    start_time = i.started, updated_at = i.updated, end_time = i.ended, error = i.error,
    steps_entered = i.entered, steps_completed = i.completed, steps_failed = i.failed,
    current_step = i.step, last_event_id = i.last, terminal_event_id = i.terminal,
    newest_event_id = i.newest
from unnest(
    $1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[],
    $8::timestamptz[], $9::timestamptz[], $10::timestamptz[], $11::text[], $12::bigint[],
    $13::bigint[], $14::bigint[], $15::text[], $16::bigint[], $17::bigint[], $18::bigint[]
) i (
    execution_id, catalog_id, path, path_folded, parent, status, version, started, updated, ended,
    error, entered, completed, failed, step, last, terminal, newest
)
where e.execution_id = i.execution_id
