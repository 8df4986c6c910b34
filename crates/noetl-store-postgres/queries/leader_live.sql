-- Live leases whose names begin with this text, in byte order.
select name, holder, epoch, until from noetl.leader
where name ^@ $1 and until > now()
order by name
