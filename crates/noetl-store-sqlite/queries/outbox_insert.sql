-- Adds an event, or changes no row when it is there already.
insert into outbox (
    tenant_id, execution_id, event_id, subject, payload, payload_codec,
    available_at, created_at, updated_at
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?7)
on conflict (execution_id, event_id) do nothing
