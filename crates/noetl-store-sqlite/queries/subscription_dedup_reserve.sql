-- Claims a message; changes no row when a claim after ?6 counts.
insert into subscription_dedup (tenant_id, subscription_id, dedup_key, execution_id, seen_at)
values (?1, ?2, ?3, ?4, ?5)
on conflict (tenant_id, subscription_id, dedup_key) do update set
    execution_id = excluded.execution_id, seen_at = excluded.seen_at
where seen_at <= ?6
