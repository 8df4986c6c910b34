-- The id of the event at a place that is the last of a subscription's log, which the caller holds.
select coalesce(
    (
        select a.last_event_id from noetl.event_append a
        where a.execution_id = $1 and a.first_seq <= $2 order by a.first_seq desc limit 1
    ),
    (select r.event_id from noetl.event_row r where r.execution_id = $1 and r.seq = $2)
)
