-- Removes expired variables, the earliest first.
delete from noetl.transient t using (
    select tenant_id, execution_id, var_name from noetl.transient
    where expires_at <= now()
    order by expires_at limit $1
    for update
) expired
where t.tenant_id = expired.tenant_id and t.execution_id = expired.execution_id
    and t.var_name = expired.var_name
