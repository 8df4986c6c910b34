-- Gives a message back; changes no row when it is another execution's.
delete from subscription_dedup
where tenant_id = ?1 and subscription_id = ?2 and dedup_key = ?3 and execution_id = ?4
