-- Commands in id order, and whether each ended at a time or earlier in an execution that is not
-- live. A command that ended never moves again, and neither does its execution.
select id, ended_at <= ?2 and not exists (
    select 1 from execution where execution.id = command.execution_id and execution.ended_at is null
)
from command
where id > ?1
order by id limit ?3
