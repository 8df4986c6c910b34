-- Removes results of an execution, the oldest first.
delete from noetl.result_store r using (
    select result_id from noetl.result_store
    where tenant_id = $1 and execution_id = $2
    order by result_id limit $3
    for update
) old
where r.result_id = old.result_id
