-- Runtimes of a tenant, by kind and name.
select runtime_id, kind, name, uri, status, labels, capabilities, capacity, runtime, heartbeat,
    created_at, updated_at
from runtime
where tenant_id = ?1
order by kind, name
