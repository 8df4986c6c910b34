-- Keeps variables in the place of any with their names; of several with one name the last. They
-- are written in the order of names, so that two callers never wait for each other in a circle.
insert into noetl.transient (
    tenant_id, execution_id, var_name, var_type, body, source_step, scope, expires_at,
    created_at, accessed_at, access_count
)
select distinct on (v.name) $1, $2, v.name, v.type, v.body, v.step, v.scope, v.expires, now(),
    null::timestamptz, 0
from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[])
    with ordinality v (name, type, body, step, scope, expires, place)
order by v.name, v.place desc
on conflict (tenant_id, execution_id, var_name) do update set
    var_type = excluded.var_type, var_value = null, body = excluded.body,
    source_step = excluded.source_step, scope = excluded.scope, expires_at = excluded.expires_at,
    created_at = excluded.created_at, accessed_at = null, access_count = 0
