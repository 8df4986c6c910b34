-- Those of the commands of a JSON list that have a lease.
select id, execution_id, lease_until, lease_max
from command
where id in (select value from json_each(?1)) and lease_until is not null
order by id
