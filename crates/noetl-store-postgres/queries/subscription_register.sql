-- Adds a subscription, or returns the one of its path that is not deactivated, and says which. The
-- update changes nothing; it is there because it returns the row, also one that came a moment ago.
insert into noetl.subscription (
    id, tenant_id, path, catalog_id, state, last_event_type, created_at, updated_at, version
)
values ($1, $2, $3, $4, $5, $6, $7, $7, 1)
on conflict (tenant_id, path) where state <> 'DEACTIVATED' do update set path = excluded.path
returning id, path, catalog_id, state, last_event_type, created_at, updated_at, id = $1
