-- What would go with executions, without what was counted by its own age before: commands that
-- ended at $2 or earlier, and what expired at $3 or earlier.
with gone as (
    select execution_id, tenant_id from noetl.execution where execution_id = any ($1)
)
select
    (select coalesce(array_agg(execution_id), '{}') from gone),
    (select count(*) from noetl.event_row where execution_id = any ($1)) + (
        select coalesce(sum(last_seq - first_seq + 1), 0)::bigint
        from noetl.event_append where execution_id = any ($1)
    ),
    (select count(*) from noetl.command
        where execution_id = any ($1) and (completed_at is null or completed_at > $2)),
    (select count(*) from noetl.projection_snapshot t join gone
        on t.aggregate_id = gone.execution_id::text
            or t.aggregate_id like 'execution/' || gone.execution_id || '/_%'),
    (select count(*) from noetl.blob_ref where execution_id = any ($1)),
    (select count(*) from noetl.transient t join gone using (tenant_id, execution_id)
        where t.expires_at is null or t.expires_at > $3),
    (select count(*) from noetl.result_store t join gone using (tenant_id, execution_id)
        where t.expires_at is null or t.expires_at > $3),
    (select count(*) from noetl.keychain t join gone using (tenant_id, execution_id)
        where t.scope_type = 'local' and (t.expires_at is null or t.expires_at > $3)),
    (select count(*) from noetl.log where execution_id = any ($1))
