-- Records a heartbeat of a runtime. Returns the microseconds since its last one; no row when it is unknown.
with last as materialized (
    select heartbeat from noetl.runtime
    where tenant_id = $1 and kind = $2 and name = $3
    for update
)
update noetl.runtime r set heartbeat = now(), updated_at = now()
from last
where r.tenant_id = $1 and r.kind = $2 and r.name = $3
returning (extract(epoch from now() - last.heartbeat) * 1000000)::bigint
