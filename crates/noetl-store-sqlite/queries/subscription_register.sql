-- Adds a subscription, or changes no row when its path has one that is not deactivated.
insert into subscription (
    id, tenant_id, path, catalog_id, state, last_event_type, created_at, updated_at, version
) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 1)
on conflict (tenant_id, path) where state <> 'DEACTIVATED' do nothing
