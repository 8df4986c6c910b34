-- Every subscription that has events, with what decides on them and how many there are.
select s.id, s.state, s.updated_at, n.events
from noetl.subscription s
cross join lateral (
    select count(*) as events from noetl.event e where e.execution_id = s.id
) n
where n.events > 0
order by s.id
