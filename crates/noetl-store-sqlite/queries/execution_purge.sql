-- Removes an execution unless it is live, was updated after a time, or waits for a timer.
delete from execution
where id = ?1 and updated_at <= ?2
    and (ended_at is not null or origin = 'imported' or exists (
        select 1 from event_row
        where execution_id = ?1 and append_rows is not null and seq = 1 and origin = 'imported'
    ))
    and not exists (select 1 from due where execution_id = ?1)
returning tenant_id
