-- Lines of an execution, or of one of its commands, after a number, in order.
select n, command_id, at, stream, text
from log
where execution_id = ?1 and n > ?2 and (?3 is null or command_id = ?3)
order by n
limit ?4
