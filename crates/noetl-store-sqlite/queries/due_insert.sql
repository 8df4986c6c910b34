-- Adds a row for its sender's tenant, or changes no row when its id is taken.
insert into due (id, tenant_id, execution_id, kind, target_id, due_at, payload, ready_at)
select ?1, tenant_id, id, ?3, ?4, ?5, ?6, ?5 from execution where id = ?2
on conflict (id) do nothing
