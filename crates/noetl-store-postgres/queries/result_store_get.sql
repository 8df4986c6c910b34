-- The data of one result that has not expired, if tenant, execution and name are its own.
select coalesce(body, data::text) from noetl.result_store
where result_id = $1 and tenant_id = $2 and execution_id = $3 and name = $4
    and (expires_at is null or expires_at > now())
