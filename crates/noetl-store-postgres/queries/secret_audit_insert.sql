-- Adds a use and its link at the end of the chain, or changes no row when its id is taken. Whoever
-- sends this holds the row of the head.
with used as (
    insert into noetl.secret_audit (
        tenant_id, audit_id, occurred_at, credential, operation, outcome, worker_id, execution_id,
        parent_execution_id, server_region, broker_region, kek_version, notes, chain_seq
    ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
    on conflict (audit_id) do nothing
    returning chain_seq
), linked as (
    insert into noetl.audit_link (seq, occurred_at, content_hash, link_hash)
    select chain_seq, $3, $15, $16 from used
    returning seq
)
update noetl.audit_head set seq = linked.seq, link_hash = $16 from linked
