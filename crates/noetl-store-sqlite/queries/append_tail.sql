-- Appends with an event after a position, in commit order, each with data of its execution and the ID
-- of the event before its first one.
select a.first_seq, a.last_seq, a.last_event_id, a.created_at, a.body, a.execution_id, a.position,
    coalesce(x.tenant_id, s.tenant_id, 'default'), coalesce(x.catalog_id, s.catalog_id),
    (select iif(p.last_seq = a.first_seq - 1, p.last_event_id, null) from event_append p
        where p.execution_id = a.execution_id and p.first_seq < a.first_seq
        order by p.first_seq desc limit 1)
from event_append a
left join execution x on x.id = a.execution_id
left join subscription s on s.id = a.execution_id
where a.position > ?1
order by a.position
