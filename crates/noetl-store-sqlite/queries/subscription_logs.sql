-- Every subscription that has events, with what decides on them and how many there are.
select s.id, s.state, s.updated_at, count(*)
from subscription s join event e on e.execution_id = s.id
group by s.id
order by s.id
