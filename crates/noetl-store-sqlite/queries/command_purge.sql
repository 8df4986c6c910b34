-- Removes the commands that the events of an execution up to a place have issued.
delete from command where execution_id = ?1 and id in (
    select event_id from event
    where execution_id = ?1 and seq <= ?2 and event_type = 'command.issued'
)
