-- Removes the appends of a log up to a place.
delete from event
where position in (
    select e.position from event a cross join event e
    where a.execution_id = ?1
        and a.append_rows is not null
        and a.seq <= ?2
        and e.position between a.position and a.position + a.append_rows - 1
)
