-- The subscription of a path that is not deactivated.
select id, path, catalog_id, state, last_event_type, created_at, updated_at
from subscription indexed by subscription_live
where tenant_id = ?1 and path = ?2 and state <> 'DEACTIVATED'
