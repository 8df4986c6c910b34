-- Notes what is kept of a command's lines.
insert into log_command (
    execution_id, command_id, head_until, head_bytes, tail_bytes, gap_lines, gap_bytes
)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (execution_id, command_id) do update set
    head_until = excluded.head_until,
    head_bytes = excluded.head_bytes,
    tail_bytes = excluded.tail_bytes,
    gap_lines = excluded.gap_lines,
    gap_bytes = excluded.gap_bytes
