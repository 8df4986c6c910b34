-- Removes the appends of a log up to a place.
delete from event_row
where position in (
    select e.position from event_row a cross join event_row e
    where a.execution_id = ?1
        and a.append_rows is not null
        and a.seq <= ?2
        and e.position between a.position and a.position + a.append_rows - 1
)
