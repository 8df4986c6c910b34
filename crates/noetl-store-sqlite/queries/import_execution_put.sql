-- An execution as an import leaves it.
insert into execution (
    id, tenant_id, start_key, catalog_id, path, playbook_version, parent_id, status, version,
    started_at, updated_at, ended_at, error, steps_entered, steps_completed, steps_failed,
    steps_running, current_step, last_event_id, terminal_event_id, origin
) values (
    ?1, ?2, 0, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0, ?15, ?16, ?17, 'imported'
)
on conflict (id) do update set
    catalog_id = excluded.catalog_id, path = excluded.path, parent_id = excluded.parent_id,
    status = excluded.status, version = excluded.version, started_at = excluded.started_at,
    updated_at = excluded.updated_at, ended_at = excluded.ended_at, error = excluded.error,
    steps_entered = excluded.steps_entered, steps_completed = excluded.steps_completed,
    steps_failed = excluded.steps_failed, current_step = excluded.current_step,
    last_event_id = excluded.last_event_id, terminal_event_id = excluded.terminal_event_id
