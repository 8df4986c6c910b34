-- Every subscription that has events, with what decides on them and how many there are.
select s.id, s.state, s.updated_at, sum(e.append_rows)
from subscription s cross join event e
where e.execution_id = s.id and e.append_rows is not null
group by s.id
order by s.id
