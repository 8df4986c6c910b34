-- Links after a number, in their order, each with its use as far as there is one.
select a.audit_id, a.occurred_at, a.credential, a.operation, a.outcome, a.worker_id,
    a.execution_id, a.parent_execution_id, a.server_region, a.broker_region, a.kek_version,
    a.notes, a.tenant_id, l.seq, l.occurred_at, l.content_hash, l.link_hash
from audit_link l left join secret_audit a on a.chain_seq = l.seq
where l.seq > ?1
order by l.seq
limit ?2
