-- Every subscription of a tenant, in id order.
select id, path, catalog_id, state, last_event_type, created_at, updated_at
from noetl.subscription
where tenant_id = $1
order by id
