-- Those of the ids that a row or an entry of their log has, and the appends that can have others, in all
-- logs that are named.
select f.event_id, f.first_seq, f.last_seq, f.last_event_id, f.created_at, f.body, i.execution_id
from (
    select u.execution_id, array_agg(u.event_id) as ids
    from unnest($1::bigint[], $2::bigint[]) u (execution_id, event_id)
    group by u.execution_id
) i
cross join lateral noetl.event_find_many_2(i.execution_id, i.ids, false) f
