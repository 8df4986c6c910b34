-- Removes expired results, the earliest first.
delete from result_store where result_id in (
    select result_id from result_store indexed by result_store_expiry
    where expires_at <= ?1
    order by expires_at, result_id limit ?2
)
