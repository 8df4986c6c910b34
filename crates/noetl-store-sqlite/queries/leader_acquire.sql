-- Takes a name that is free, over or the holder's own; changes no row when another has it.
insert into leader (name, holder, epoch, until) values (?1, ?2, 1, ?3)
on conflict (name) do update set
    epoch = case when until > ?4 then epoch else epoch + 1 end,
    holder = excluded.holder,
    until = excluded.until
where until <= ?4 or holder = excluded.holder
returning name, holder, epoch, until
