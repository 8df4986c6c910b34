-- Adds entries for imported rows that halving does not find, and for the ids that rows came with.
insert into noetl.event_lookup (execution_id, id, is_key, seq)
select l.execution_id, l.id, l.is_key, l.seq
from unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::bigint[]) with ordinality
    l (execution_id, id, is_key, seq, place)
order by l.place
on conflict (execution_id, id, is_key) do nothing
