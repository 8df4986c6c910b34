-- Adds a runtime or takes over what a known one says, in one statement; its id and birth stay.
insert into noetl.runtime (
    runtime_id, tenant_id, kind, name, uri, status, labels, capabilities, capacity, runtime,
    heartbeat, created_at, updated_at
) values ($1, $2, $3, $4, $5, $6, $7::json, $8::json, $9, $10::json, now(), now(), now())
on conflict (tenant_id, kind, name) do update set
    uri = excluded.uri, status = excluded.status, labels = excluded.labels,
    capabilities = excluded.capabilities, capacity = excluded.capacity,
    runtime = excluded.runtime, heartbeat = excluded.heartbeat, updated_at = excluded.updated_at
returning runtime_id, kind, name, uri, status, labels::text, capabilities::text, capacity,
    runtime::text, heartbeat, created_at, updated_at
