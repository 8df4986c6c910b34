-- Removes results of an execution, the oldest first.
delete from result_store where result_id in (
    select result_id from result_store indexed by result_store_execution
    where tenant_id = ?1 and execution_id = ?2
    order by result_id limit ?3
)
