-- What is wrong with the schema, a sentence each.
select format('index %s is not usable', i.indexrelid::regclass)
from pg_index i
join pg_class c on c.oid = i.indexrelid
where c.relnamespace = 'noetl'::regnamespace and not (i.indisvalid and i.indisready)
union all
select 'the default partition of the log holds rows: an execution id is outside every quarter'
where exists (select from noetl.event_default) or exists (select from noetl.event_append_default)
order by 1
