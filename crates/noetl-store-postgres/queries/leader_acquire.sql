-- Takes a name that is free, over or the holder's own; no row when another has it.
insert into noetl.leader as l (name, holder, epoch, until) values ($1, $2, 1, now() + $3)
on conflict (name) do update set
    epoch = case when l.until > now() then l.epoch else l.epoch + 1 end,
    holder = excluded.holder,
    until = excluded.until
where l.until is null or l.until <= now() or l.holder = excluded.holder
returning name, holder, epoch, until
