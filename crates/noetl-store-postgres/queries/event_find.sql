-- The place of the event that has this id in this log, or of the first that came with it, as far as
-- rows and entries say; and the append that can have the event.
select seq, first_seq, last_seq, last_event_id, created_at, body from noetl.event_find_2($1, $2)
