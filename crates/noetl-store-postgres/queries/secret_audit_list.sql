-- Uses of a tenant's secrets, latest first, at equal times the larger id first.
select audit_id, occurred_at::timestamptz, coalesce(credential, ''), coalesce(operation, ''),
    coalesce(outcome, ''), worker_id, execution_id, parent_execution_id, server_region,
    broker_region, kek_version, notes
from noetl.secret_audit
where tenant_id = $1
    and ($2::text is null or credential = $2)
    and ($3::bigint is null or execution_id = $3)
    and ($4::timestamptz is null or occurred_at >= $4)
    and ($5::timestamptz is null or occurred_at <= $5)
order by occurred_at desc, audit_id desc
limit $6
