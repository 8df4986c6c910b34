-- What is encrypted of credentials of all tenants after an id, in id order.
select id, tenant_id, name, type, data_encrypted from credential
where ?1 is null or id > ?1
order by id limit ?2
