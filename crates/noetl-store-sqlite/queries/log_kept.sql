-- What is kept of a command's lines.
select head_until, head_bytes, tail_bytes, gap_lines, gap_bytes
from log_command
where execution_id = ?1 and command_id = ?2
