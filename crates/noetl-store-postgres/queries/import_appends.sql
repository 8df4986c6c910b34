-- Adds appends with rows from elsewhere at the end of their logs, in the lane whose positions were drawn.
insert into noetl.event_append (
    execution_id, first_seq, last_seq, last_event_id, newest_event_id, created_at, body, lane, position
)
select a.execution_id, a.first_seq, a.last_seq, a.last_event_id, a.newest_event_id, a.at, a.body, $8,
    $9 + sum(a.last_seq - a.first_seq + 1) over (order by a.place)
from unnest(
    $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamp[], $7::text[]
) with ordinality a (
    execution_id, first_seq, last_seq, last_event_id, newest_event_id, at, body, place
)
