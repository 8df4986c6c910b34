-- How many executions of a tenant started in each stretch of a time, and how they stand now.
select (extract(epoch from start_time - $2::timestamptz) * 1000000)::bigint / $3 as place, status,
    count(*)
from noetl.execution
where tenant_id = $1 and start_time >= $2 and start_time < $4
group by place, status
order by place, status collate "C"
