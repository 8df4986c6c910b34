-- Moves a cursor forward, under a lease if one is named. The lease's row is locked until the commit,
-- so nobody takes it over between the check and the move. Answers whether the lease is lost, and
-- whether the cursor moved.
with fence as materialized (
    select 1 from noetl.leader
    where name = $3 and holder = $4 and epoch = $5 and until > now()
    for share
), moved as (
    insert into noetl.stream_cursor as c (name, position, updated_at)
    select $1, $2, now() where $3::text is null or exists (select from fence)
    on conflict (name) do update
    set position = excluded.position, updated_at = excluded.updated_at
    where excluded.position > c.position
    returning 1
)
select $3::text is not null and not exists (select from fence), exists (select from moved)
