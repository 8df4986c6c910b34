-- Counts the rows that are purged with an execution, without those that expired at ?2 or earlier,
-- which are counted by their own age, and without commands.
select
    (select coalesce(sum(append_rows), 0) from event_row
        where execution_id = ?1 and append_rows is not null)
    + (select coalesce(sum(last_seq - first_seq + 1), 0) from event_append where execution_id = ?1),
    (select count(*) from projection_snapshot
        where aggregate_id = cast(?1 as text)
            or (aggregate_id > 'execution/' || ?1 || '/' and aggregate_id < 'execution/' || ?1 || '0')),
    (select count(*) from blob_ref where execution_id = ?1),
    (select count(*) from transient
        where tenant_id = ?3 and execution_id = ?1 and (expires_at is null or expires_at > ?2)),
    (select count(*) from result_store
        where tenant_id = ?3 and execution_id = ?1 and (expires_at is null or expires_at > ?2)),
    (select count(*) from keychain
        where tenant_id = ?3 and execution_id = ?1 and scope_type = 'local'
            and (expires_at is null or expires_at > ?2)),
    (select count(*) from log where execution_id = ?1)
