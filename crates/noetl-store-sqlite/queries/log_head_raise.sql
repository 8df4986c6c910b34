-- Raises the newest event id and the last position, and never lowers them.
insert into log_head (id, newest_event_id, last_position) values (1, ?1, ?2)
on conflict (id) do update set
    newest_event_id = max(newest_event_id, excluded.newest_event_id),
    last_position = max(last_position, excluded.last_position)
