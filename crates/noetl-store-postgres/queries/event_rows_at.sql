-- The appends of one execution's log that these places are in, up to where their bodies pass so many
-- bytes: those that begin before that, in the order in which the places name them.
with places as materialized (
    select a.first_seq, a.bytes, w.number
    from unnest($2::bigint[]) with ordinality w (seq, number)
    cross join lateral (
        select n.first_seq, octet_length(n.body) as bytes from noetl.event_append n
        where n.execution_id = $1 and n.first_seq <= w.seq order by n.first_seq desc limit 1
    ) a
), first_places as materialized (
    select first_seq, bytes, min(number) as number from places group by first_seq, bytes
)
select a.execution_id, a.first_seq, a.last_event_id, a.created_at, a.last_seq, a.body
from (
    select p.*, sum(p.bytes) over (order by p.number) - p.bytes as bytes_before from first_places p
) p
cross join lateral (
    select * from noetl.event_append n
    where n.execution_id = $1 and n.first_seq between p.first_seq and p.first_seq
    order by n.first_seq
) a
where p.bytes_before < $3
