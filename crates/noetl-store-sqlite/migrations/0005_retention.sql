-- What retention needs. Positions stay unique over the life of the file: the newest one ever given
-- is kept here, because the row that had it may be gone.
alter table log_head add column last_position integer not null default 0;

update log_head set last_position = coalesce((select max(position) from event), 0);
insert into log_head (id, newest_event_id, last_position)
select 1, max(event_id), max(position) from event
where not exists (select 1 from log_head)
having count(*) > 0;

-- Executions that are gone and whose rows in other tables are still being removed. A process that
-- dies in between leaves them for the next purge to finish.
create table purged_execution (
    execution_id integer primary key,
    tenant_id text not null
) strict;

-- Finds the snapshots of an execution, whatever they are of.
create index projection_snapshot_aggregate on projection_snapshot (aggregate_id);
