-- Finds the rows that another program wrote before the database was ours, in the order of their ids:
-- they have no lane, and are published first when a log is published from its beginning. Our own
-- rows are not in it, so they pay nothing for it.
create index if not exists event_adopted on noetl.event (event_id) where lane is null;
