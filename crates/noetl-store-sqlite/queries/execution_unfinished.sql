-- Unfinished executions above an id, in id order, read from their own small index.
select id from execution indexed by execution_unfinished
where ended_at is null and origin = 'own' and id > ?1
order by id limit ?2
