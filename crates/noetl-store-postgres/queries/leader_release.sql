-- Gives one holding back that is live; changes no row when it is lost. The epoch stays.
update noetl.leader set holder = null, until = null
where name = $1 and holder = $2 and epoch = $3 and until > now()
