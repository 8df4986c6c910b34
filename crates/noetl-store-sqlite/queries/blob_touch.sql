-- Notes that content was written again: at a later time, whatever the clock says.
update blob set written_at = max(?2, written_at + 1)
where digest = ?1
