-- Those of the executions of a JSON list that sent a row of a kind which still waits.
select distinct execution_id
from due indexed by due_execution
where execution_id in (select value from json_each(?2)) and kind = ?1
order by execution_id
