-- Rows of the outbox for what an import kept, in the order it kept them.
insert into noetl.outbox (execution_id, event_id, tenant_id, subject, body, payload_codec)
select o.execution_id, o.event_id, o.tenant, o.subject, o.body, $6
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[]) with ordinality
    o (execution_id, event_id, tenant, subject, body, place)
order by o.place
on conflict (execution_id, event_id) do nothing
