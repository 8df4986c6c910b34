-- Results of an execution that have not expired, above an id, in id order.
select result_id, execution_id, coalesce(name, ''), coalesce(scope, ''), source_step,
    coalesce(bytes, 0), coalesce(sha256, ''), coalesce(media_type, 'application/json'),
    expires_at::timestamptz
from noetl.result_store
where tenant_id = $1 and execution_id = $2 and result_id > $3
    and (expires_at is null or expires_at > now())
order by result_id limit $4
