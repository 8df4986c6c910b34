-- Rows after a position, in the order they were committed. There is one writer, and positions are
-- given in its transactions, so none comes later that belongs before one of these. The row before
-- one in its log is the one before it in its append, or the last of the append before.
select e.execution_id, e.seq, e.event_id, e.created_at, e.origin, e.event_type, e.node_name,
    e.node_type, e.status, e.command_id, e.parent_execution_id, e.worker_id, e.meta, e.error,
    e.context, e.result, e.duration, e.idempotency_key, e.more, e.position,
    coalesce(x.tenant_id, s.tenant_id, 'default'), coalesce(x.catalog_id, s.catalog_id),
    (select p.event_id from event_row p
        where p.position = case
                when e.append_rows is null then e.position - 1
                else (
                    select a.position + a.append_rows - 1 from event_row a
                    where a.execution_id = e.execution_id
                        and a.append_rows is not null
                        and a.seq < e.seq
                    order by a.seq desc limit 1
                )
            end
            and p.execution_id = e.execution_id
            and p.seq = e.seq - 1)
from event_row e
left join execution x on x.id = e.execution_id
left join subscription s on s.id = e.execution_id
where e.position > ?1
order by e.position limit ?2
