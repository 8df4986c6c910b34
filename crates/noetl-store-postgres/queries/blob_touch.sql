-- Notes that content was written again: at a later time, whatever the clock says.
update noetl.blob
set written_at = greatest(now(), written_at + interval '1 microsecond')
where digest = $1
