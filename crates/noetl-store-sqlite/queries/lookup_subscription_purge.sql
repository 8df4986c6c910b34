-- Removes up to ?3 entries of events of a subscription that was deactivated at ?2 or earlier.
delete from event_lookup
where (execution_id, id, is_key) in (
    select l.execution_id, l.id, l.is_key from event_lookup l
    where l.execution_id = ?1 and exists (
        select 1 from subscription s
        where s.id = ?1 and s.state = 'DEACTIVATED' and s.updated_at <= ?2
    )
    limit ?3
)
