-- Removes the commands that the events of an execution up to a place have issued.
delete from command where execution_id = ?1 and id in (
    select e.event_id from event_row a cross join event_row e
    where a.execution_id = ?1
        and a.append_rows is not null
        and a.seq <= ?2
        and e.position between a.position and a.position + a.append_rows - 1
        and e.seq <= ?2
        and e.event_type = 'command.issued'
)
