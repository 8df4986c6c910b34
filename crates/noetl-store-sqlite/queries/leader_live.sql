-- Live leases with names from this text on, in byte order.
select name, holder, epoch, until from leader
where name >= ?1 and until > ?2
order by name
