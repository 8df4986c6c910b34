-- Removes up to ?3 appends of a subscription that was deactivated at ?2 or earlier. Each is one event.
delete from event_append
where position in (
    select a.position from event_append a
    where a.execution_id = ?1 and exists (
        select 1 from subscription s
        where s.id = ?1 and s.state = 'DEACTIVATED' and s.updated_at <= ?2
    )
    order by a.first_seq limit ?3
)
