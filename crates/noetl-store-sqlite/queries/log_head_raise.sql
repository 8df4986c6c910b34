-- Raises the newest event id, and never lowers it.
insert into log_head (id, newest_event_id) values (1, ?1)
on conflict (id) do update set newest_event_id = max(newest_event_id, excluded.newest_event_id)
