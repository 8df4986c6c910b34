-- The pool whose workers take a command, and the lease of a worker elsewhere that holds it: when it
-- ends, and beyond what it is not renewed (none for a worker that names what it still holds).
alter table command add column pool text not null default 'shared';
alter table command add column limit_ms integer;
alter table command add column lease_until integer;
alter table command add column lease_max integer;

create index command_pending on command (pool, id) where state = 'PENDING';
create index command_lease on command (lease_until) where lease_until is not null;
create index command_holder on command (worker_id) where lease_until is not null;

-- What workers elsewhere held before there were leases is held for as long as if it began now.
update command set
    lease_until = unixepoch() * 1000000 + 90000000,
    lease_max = unixepoch() * 1000000 + 3600000000
where ended_at is null
    and worker_id is not null
    and worker_id <> 'local' and worker_id not like 'local:%' and worker_id <> 'control-plane';
