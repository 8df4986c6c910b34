-- Removes one variable of an execution, or all; a row per removed one says whether it was alive.
delete from noetl.transient
where tenant_id = $1 and execution_id = $2 and ($3::text is null or var_name = $3)
returning expires_at is null or expires_at > now()
