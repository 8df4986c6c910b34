-- Adds an append at the end of the table. The caller gives positions above all earlier ones.
insert into event_append (
    position, execution_id, first_seq, last_seq, last_event_id, newest_event_id, created_at, body
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
