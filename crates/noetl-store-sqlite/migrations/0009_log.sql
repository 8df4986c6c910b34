-- What steps print. Lines are no events: they decide nothing, come in any number, and only some of
-- them are kept. A line's place is counted per execution, so that a reader can go on where it was.
create table log (
    execution_id integer not null,
    n integer not null,
    command_id integer not null,
    at integer not null,
    stream text not null,
    text text not null,
    primary key (execution_id, n)
) strict, without rowid;

create index log_command_line on log (execution_id, command_id, n);

-- How many lines an execution has had, and how many bytes are kept of them.
create table log_execution (
    execution_id integer primary key,
    lines integer not null,
    bytes integer not null
) strict;

-- What is kept of one command's lines: its first ones up to `head_until`, and its newest ones; and
-- how much went in between.
create table log_command (
    execution_id integer not null,
    command_id integer not null,
    head_until integer not null,
    head_bytes integer not null,
    tail_bytes integer not null,
    gap_lines integer not null,
    gap_bytes integer not null,
    primary key (execution_id, command_id)
) strict, without rowid;

-- Finds the executions that one started.
create index execution_parent on execution (tenant_id, parent_id, started_at)
    where parent_id is not null;
