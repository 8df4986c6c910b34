-- Results of an execution that have not expired, above an id, in id order.
select result_id, execution_id, name, scope, source_step, bytes, sha256, media_type, expires_at
from result_store indexed by result_store_execution
where tenant_id = ?1 and execution_id = ?2 and result_id > ?3
    and (expires_at is null or expires_at > ?4)
order by result_id limit ?5
