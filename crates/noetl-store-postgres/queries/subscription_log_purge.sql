-- Removes up to $3 rows and $3 appends of a subscription that was deactivated at $2 or earlier; one that
-- comes back at this moment waits, or is waited for and keeps them. Counts events, and says whether
-- there may be more.
with over as materialized (
    select s.id from noetl.subscription s
    where s.id = $1 and s.state = 'DEACTIVATED' and s.updated_at <= $2
    for no key update
), event_rows as (
    delete from noetl.event_row t
    where t.execution_id = $1 and exists (select from over) and t.event_id in (
        select e.event_id from noetl.event_row e where e.execution_id = $1 order by e.seq limit $3
    )
    returning 1
), appends as (
    delete from noetl.event_append t
    where t.execution_id = $1 and exists (select from over) and t.first_seq in (
        select a.first_seq from noetl.event_append a
        where a.execution_id = $1 order by a.first_seq limit $3
    )
    returning t.first_seq, t.last_seq
), lookups as (
    delete from noetl.event_lookup t using appends a
    where t.execution_id = $1 and t.seq between a.first_seq and a.last_seq
)
select
    (select count(*) from event_rows)
        + (select coalesce(sum(last_seq - first_seq + 1), 0)::bigint from appends),
    (select count(*) from event_rows) >= $3 or (select count(*) from appends) >= $3
