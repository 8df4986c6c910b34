-- Keeps lines of one execution, in the order given.
insert into noetl.log (execution_id, n, command_id, at, stream, text)
select $1, l.n, l.command, l.at, l.stream, l.text
from unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[], $6::text[])
    as l (n, command, at, stream, text)
