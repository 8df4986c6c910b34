-- How many executions of a tenant started in each stretch of a time, and how they stand now.
select (started_at - ?2) / ?3 as place, status, count(*)
from execution indexed by execution_started
where tenant_id = ?1 and started_at >= ?2 and started_at < ?4
group by place, status
order by place, status
