-- Notes that a runtime is there; changes no row when it is unknown.
update runtime set heartbeat = ?4, updated_at = ?4
where tenant_id = ?1 and kind = ?2 and name = ?3
