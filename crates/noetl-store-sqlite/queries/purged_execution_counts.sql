-- What would go with an execution, without what was counted by its own age before: commands that
-- ended at ?2 or earlier, and what expired at ?3 or earlier.
select
    (select coalesce(sum(append_rows), 0) from event
        where execution_id = ?1 and append_rows is not null),
    (select count(*) from command
        where id in (
            select e.event_id from event a cross join event e
            where a.execution_id = ?1
                and a.append_rows is not null
                and e.position between a.position and a.position + a.append_rows - 1
                and e.event_type = 'command.issued'
        ) and execution_id = ?1 and (ended_at is null or ended_at > ?2)),
    (select count(*) from projection_snapshot
        where aggregate_id = cast(?1 as text)
            or (aggregate_id > 'execution/' || ?1 || '/' and aggregate_id < 'execution/' || ?1 || '0')),
    (select count(*) from blob_ref where execution_id = ?1),
    (select count(*) from transient
        where tenant_id = ?4 and execution_id = ?1 and (expires_at is null or expires_at > ?3)),
    (select count(*) from result_store
        where tenant_id = ?4 and execution_id = ?1 and (expires_at is null or expires_at > ?3)),
    (select count(*) from keychain
        where tenant_id = ?4 and execution_id = ?1 and scope_type = 'local'
            and (expires_at is null or expires_at > ?3)),
    (select count(*) from log where execution_id = ?1)
