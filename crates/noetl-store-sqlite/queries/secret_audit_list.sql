-- Uses of a tenant's secrets, latest first, at equal times the larger id first.
select audit_id, occurred_at, credential, operation, outcome, worker_id, execution_id,
    parent_execution_id, server_region, broker_region, kek_version, notes
from secret_audit indexed by secret_audit_list
where tenant_id = ?1
    and (?2 is null or credential = ?2)
    and (?3 is null or execution_id = ?3)
    and occurred_at between ?4 and ?5
order by occurred_at desc, audit_id desc
limit ?6
