-- What decides whether executions go, in id order. One whose first event is imported was not
-- started here, so nothing moves it whether it has ended or not; neither does anything move one
-- that another program left. One without any time counts as of now.
select
    e.execution_id,
    coalesce(e.updated_at, e.end_time, e.start_time, now()),
    e.end_time is null and e.origin = 'own' and not exists (
        select from noetl.event_row first
        where first.execution_id = e.execution_id and first.seq = 1 and first.origin = 'imported'
        union all
        select from noetl.event_append first
        where first.execution_id = e.execution_id and first.first_seq = 1
            and noetl.append_is_imported_1(first.body)
    ),
    exists (select from noetl.due d where d.execution_id = e.execution_id)
from noetl.execution e
where e.execution_id > $1
order by e.execution_id limit $2
