-- Finds the rows that another program wrote before the database was ours, in the order of their ids:
-- they have no lane, and are published first when a log is published from its beginning. Our own
-- rows are not in it, so they pay nothing for it.
create index if not exists event_adopted on noetl.event (event_id) where lane is null;

-- Every column of the published schema goes out with such a row; an older database may lack some.
alter table noetl.event
    add column if not exists current_index integer,
    add column if not exists current_item text,
    add column if not exists context_value text,
    add column if not exists context_key varchar,
    add column if not exists distributed_state varchar,
    add column if not exists trace_component json,
    add column if not exists stream_id text,
    add column if not exists stream_version bigint,
    add column if not exists schema_name text,
    add column if not exists schema_version integer not null default 1,
    add column if not exists producer text,
    add column if not exists causation_id text,
    add column if not exists correlation_id text,
    add column if not exists idempotency_key text,
    add column if not exists envelope_checksum text,
    add column if not exists event_time timestamptz not null default now(),
    add column if not exists ingest_time timestamptz not null default now(),
    add column if not exists payload_ref json;

create or replace view noetl.event_log as select * from noetl.event;
