-- What steps print. Lines are no events: they decide nothing, come in any number, and only some of
-- them are kept. A line's place is counted per execution, so that a reader can go on where it was.
create table if not exists noetl.log (
    execution_id bigint not null,
    n bigint not null,
    command_id bigint not null,
    at timestamptz not null,
    stream text not null,
    text text not null,
    primary key (execution_id, n)
);

create index if not exists log_command_line on noetl.log (execution_id, command_id, n);

-- How many lines an execution has had, and how many bytes are kept of them. Whoever appends holds
-- this row, so that no line becomes visible after one with a larger place.
create table if not exists noetl.log_execution (
    execution_id bigint primary key,
    lines bigint not null,
    bytes bigint not null
);

-- What is kept of one command's lines: its first ones up to `head_until`, and its newest ones; and
-- how much went in between.
create table if not exists noetl.log_command (
    execution_id bigint not null,
    command_id bigint not null,
    head_until bigint not null,
    head_bytes bigint not null,
    tail_bytes bigint not null,
    gap_lines bigint not null,
    gap_bytes bigint not null,
    primary key (execution_id, command_id)
);

-- Finds the executions that one started.
create index if not exists execution_parent
    on noetl.execution (tenant_id, parent_execution_id, start_time)
    where parent_execution_id is not null;
