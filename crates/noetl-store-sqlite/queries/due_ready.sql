-- Rows that are ready, those that have been longest first.
select id from due indexed by due_ready
where ready_at <= ?1
order by ready_at, id limit ?2
