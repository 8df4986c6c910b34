-- Every subscription that has events, with what decides on them and how many there are.
select s.id, s.state, s.updated_at, n.events
from noetl.subscription s
cross join lateral (
    select coalesce(sum(l.events), 0)::bigint as events
    from (
        select count(*) as events from noetl.event_row e where e.execution_id = s.id
        union all
        select sum(a.last_seq - a.first_seq + 1) from noetl.event_append a
        where a.execution_id = s.id
    ) l
) n
where n.events > 0
order by s.id
