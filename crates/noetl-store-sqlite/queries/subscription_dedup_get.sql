-- The execution a message became.
select execution_id from subscription_dedup
where tenant_id = ?1 and subscription_id = ?2 and dedup_key = ?3
