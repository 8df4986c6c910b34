-- Lends out rows that are ready, those that have been longest first. Rows that another caller is
-- about to take are passed over.
with ready as (
    select id, ready_at from noetl.due
    where ready_at <= now()
    order by ready_at, id limit $1
    for update skip locked
), taken as (
    update noetl.due d set ready_at = now() + $2, attempts = least(d.attempts, 2147483646) + 1
    from ready
    where d.id = ready.id
    returning d.*, ready.ready_at as since
)
select id, tenant_id, execution_id, kind, target_id, due_at, payload::text, attempts
from taken
order by since, id
