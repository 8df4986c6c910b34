-- Rows from elsewhere keep the columns they came with beside ours. Those that operators look for
-- have columns of their own in the published schema; an older one may lack some.
alter table noetl.event
    add column if not exists stage_id bigint,
    add column if not exists frame_id bigint,
    add column if not exists stack_trace text,
    add column if not exists aggregate_id text,
    add column if not exists aggregate_type text,
    add column if not exists more json;

create or replace view noetl.event_log as select * from noetl.event;
