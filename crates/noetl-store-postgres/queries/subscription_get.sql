-- One subscription of one tenant.
select id, path, catalog_id, state, last_event_type, created_at, updated_at
from noetl.subscription
where id = $1 and tenant_id = $2
