-- Those of the ids that an event of this log has or came with.
select event_id from noetl.event_find_many_1($1, $2) found (event_id)
