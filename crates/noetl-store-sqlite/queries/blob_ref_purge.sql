-- Removes up to ?3 references of an execution.
delete from blob_ref where (execution_id, digest) in (
    select execution_id, digest from blob_ref where execution_id = ?1 and ?2 is not null limit ?3
)
