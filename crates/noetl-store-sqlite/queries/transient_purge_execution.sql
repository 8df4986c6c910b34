-- Removes up to ?3 variables of an execution, expired or not.
delete from transient where rowid in (
    select rowid from transient where tenant_id = ?2 and execution_id = ?1 limit ?3
)
