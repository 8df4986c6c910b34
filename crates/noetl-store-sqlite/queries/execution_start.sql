-- Creates an execution, or changes no row when its id is taken.
insert into execution (
    id, tenant_id, start_key, catalog_id, path, playbook_version, parent_id, status, version,
    started_at, updated_at, ended_at, error,
    steps_entered, steps_completed, steps_failed, steps_running, current_step, last_event_id,
    newest_event_id
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    ?20)
on conflict (id) do nothing
