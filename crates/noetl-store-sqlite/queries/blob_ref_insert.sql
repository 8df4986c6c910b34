-- Notes a reference of an execution that exists, or changes no row when it is there.
insert into blob_ref (execution_id, digest, tenant_id)
select id, ?2, tenant_id from execution where id = ?1
on conflict (execution_id, digest) do nothing
