-- Moves the end of one holding that is live; changes no row when it is lost.
update noetl.leader set until = now() + $4
where name = $1 and holder = $2 and epoch = $3 and until > now()
