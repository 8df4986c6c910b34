-- The smallest event id after a place, from the rows after it alone: taken as one of the whole
-- log it would be looked for from the log's beginning.
with since as materialized (
    (select event_id from noetl.event where execution_id = $1 and seq > $2 order by seq)
    union all
    (select event_id from noetl.event where execution_id = $1 and seq is null order by seq)
)
select min(event_id) from since
