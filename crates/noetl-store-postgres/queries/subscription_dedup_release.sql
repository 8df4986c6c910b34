-- Gives a message back; changes no row when it is another execution's.
delete from noetl.subscription_dedup
where tenant_id = $1 and subscription_id = $2 and dedup_key = noetl.dedup_key_1($3)
    and execution_id = $4
