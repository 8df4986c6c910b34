-- Adds a runtime or takes over what a known one says, in one statement; its id and birth stay.
insert into runtime (
    runtime_id, tenant_id, kind, name, uri, status, labels, capabilities, capacity, runtime,
    heartbeat, created_at, updated_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?11)
on conflict (tenant_id, kind, name) do update set
    uri = excluded.uri, status = excluded.status, labels = excluded.labels,
    capabilities = excluded.capabilities, capacity = excluded.capacity,
    runtime = excluded.runtime, heartbeat = excluded.heartbeat, updated_at = excluded.updated_at
returning runtime_id, kind, name, uri, status, labels, capabilities, capacity, runtime, heartbeat,
    created_at, updated_at
