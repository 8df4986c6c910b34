-- Runtimes of a tenant, by kind and name in byte order.
select runtime_id, kind, name, uri, status, labels::text, capabilities::text, capacity,
    runtime.runtime::text, heartbeat, created_at, updated_at
from noetl.runtime
where tenant_id = $1
order by kind collate "C", name collate "C"
