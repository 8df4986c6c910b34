-- Lends one row out. The caller found it ready in the same transaction.
update due set ready_at = ?2, attempts = attempts + 1
where id = ?1
returning id, tenant_id, execution_id, kind, target_id, due_at, payload, attempts
