-- Wakes processes that listen for work of others.
select pg_notify($1, $2)
