-- Moves a subscription from one state to another; no row when it is not to be moved.
select id, path, catalog_id, state, last_event_type, created_at, updated_at, version
from noetl.subscription_move_2($1, $2, $3, $4, $5, $6)
