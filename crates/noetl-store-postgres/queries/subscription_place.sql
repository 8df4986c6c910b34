-- The next place in the log of a subscription, which the caller holds from then on.
update noetl.subscription set version = version + 1
where id = $1 and tenant_id = $2
returning catalog_id, version
