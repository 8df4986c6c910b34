-- The number of commands that rows of an execution issued, without those that ended at ?2 or earlier.
select count(*) from command
where id in (
    select e.event_id from event_row a cross join event_row e
    where a.execution_id = ?1
        and a.append_rows is not null
        and e.position between a.position and a.position + a.append_rows - 1
        and e.event_type = 'command.issued'
) and execution_id = ?1 and (ended_at is null or ended_at > ?2)
