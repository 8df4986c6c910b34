-- What an execution sent and what still waits, by time.
select id, tenant_id, execution_id, kind, target_id, due_at, payload::text, attempts
from noetl.due
where execution_id = $1
order by due_at, id
