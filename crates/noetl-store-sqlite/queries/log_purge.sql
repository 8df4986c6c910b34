-- Removes up to ?3 lines of an execution.
delete from log where (execution_id, n) in (
    select execution_id, n from log where execution_id = ?1 and ?2 is not null limit ?3
)
