-- The last append at or before a place whose ids grow with places, and its first id.
select seq, event_id from event_row
where execution_id = ?1 and append_rows is not null and seq <= ?2 and is_late is null
order by seq desc limit 1
