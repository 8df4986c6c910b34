-- Adds a use with the number of its link, or changes no row when its id is taken.
insert into secret_audit (
    tenant_id, audit_id, occurred_at, credential, operation, outcome, worker_id, execution_id,
    parent_execution_id, server_region, broker_region, kek_version, notes, chain_seq
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
on conflict (audit_id) do nothing
