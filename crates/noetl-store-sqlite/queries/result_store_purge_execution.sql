-- Removes up to ?3 results of an execution, expired or not.
delete from result_store where result_id in (
    select result_id from result_store where tenant_id = ?2 and execution_id = ?1 limit ?3
)
