-- Removes up to $3 events of a subscription that was deactivated at $2 or earlier; one that comes
-- back at this moment waits, or is waited for and keeps them.
with over as (
    select s.id from noetl.subscription s
    where s.id = $1 and s.state = 'DEACTIVATED' and s.updated_at <= $2
    for no key update
)
delete from noetl.event t
where t.execution_id = $1 and exists (select from over) and t.event_id in (
    select e.event_id from noetl.event e where e.execution_id = $1 order by e.seq limit $3
)
