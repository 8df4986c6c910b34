-- Removes up to ?3 events of a subscription that was deactivated at ?2 or earlier.
delete from event_row
where position in (
    select e.position from event_row e
    where e.execution_id = ?1 and e.append_rows is not null and exists (
        select 1 from subscription s
        where s.id = ?1 and s.state = 'DEACTIVATED' and s.updated_at <= ?2
    )
    order by e.seq limit ?3
)
