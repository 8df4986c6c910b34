-- The pool whose workers take a command, and the lease of a worker elsewhere that holds it: when it
-- ends, and beyond what it is not renewed (none for a worker that names what it still holds).
alter table noetl.command
    add column if not exists pool text not null default 'shared',
    add column if not exists limit_ms bigint,
    add column if not exists lease_until timestamptz,
    add column if not exists lease_max timestamptz;

create index if not exists command_pending on noetl.command (pool, event_id)
    where status = 'PENDING' and issued_seq is not null;
create index if not exists command_lease on noetl.command (lease_until)
    where lease_until is not null;
create index if not exists command_holder on noetl.command (worker_id)
    where lease_until is not null;

-- What workers elsewhere held before there were leases is held for as long as if it began now.
update noetl.command set
    lease_until = now() + interval '90 seconds',
    lease_max = now() + interval '1 hour'
where completed_at is null and issued_seq is not null
    and worker_id is not null
    and worker_id <> 'local' and worker_id not like 'local:%' and worker_id <> 'control-plane';
