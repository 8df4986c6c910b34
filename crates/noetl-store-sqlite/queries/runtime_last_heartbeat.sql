-- The time of a runtime's last heartbeat.
select heartbeat from runtime where tenant_id = ?1 and kind = ?2 and name = ?3
