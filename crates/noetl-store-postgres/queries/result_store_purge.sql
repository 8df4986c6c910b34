-- Removes expired results, the earliest first.
delete from noetl.result_store r using (
    select result_id from noetl.result_store
    where expires_at <= now()
    order by expires_at, result_id limit $1
    for update
) expired
where r.result_id = expired.result_id
