-- The place of the event that has this id in this log, or of the first that came with it.
select seq from noetl.event_find_1($1, $2) found (seq)
