-- Those of these commands that have a lease.
select event_id, execution_id, lease_until, lease_max
from noetl.command
where event_id = any ($1) and lease_until is not null
order by event_id
