-- Subscriptions that have events, with the columns that decide whether these are purged and their
-- number.
select id, state, updated_at, events from (
    select s.id, s.state, s.updated_at,
        coalesce((select sum(r.append_rows) from event_row r
            where r.execution_id = s.id and r.append_rows is not null), 0)
        + coalesce((select sum(a.last_seq - a.first_seq + 1) from event_append a
            where a.execution_id = s.id), 0) as events
    from subscription s
)
where events > 0
order by id
