-- What went of an execution's lines, or of one command's.
select command_id, head_until, gap_lines, gap_bytes
from noetl.log_command
where execution_id = $1 and ($2::bigint is null or command_id = $2) and gap_lines > 0
order by command_id
