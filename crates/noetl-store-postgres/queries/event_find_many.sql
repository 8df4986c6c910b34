-- Those of the ids that an event of this log has or came with. Each is looked up by its key: a plan
-- that joins would read the whole log.
select i.event_id
from unnest($2::bigint[]) i (event_id)
where coalesce(
    (
        select true from noetl.event e
        where e.execution_id = $1 and e.event_id = i.event_id
        limit 1
    ),
    (
        select true from noetl.event e
        where e.execution_id = $1 and e.idempotency_key = i.event_id::text
        limit 1
    ),
    false
)
