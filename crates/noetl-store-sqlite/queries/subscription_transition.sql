-- Moves a subscription from one state to another, and its log one place on; changes no row when it is not there, or when it
-- would be the second of its path that is not deactivated.
update subscription set
    state = ?4, last_event_type = ?5, updated_at = ?6, version = version + 1
where id = ?1 and tenant_id = ?2 and state = ?3
    and (?4 = 'DEACTIVATED' or not exists (
        select 1 from subscription as rival
        where rival.tenant_id = subscription.tenant_id and rival.path = subscription.path
            and rival.state <> 'DEACTIVATED' and rival.id <> subscription.id
    ))
returning id, path, catalog_id, state, last_event_type, created_at, updated_at, version
