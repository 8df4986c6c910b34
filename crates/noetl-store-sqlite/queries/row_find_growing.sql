-- The place of the event with this id in the append that begins at ?3.
select e.seq from event_row a cross join event_row e
where a.execution_id = ?1
    and a.append_rows is not null
    and a.seq = ?3
    and e.position between a.position and a.position + a.append_rows - 1
    and e.is_late is null
    and e.event_id = ?2
