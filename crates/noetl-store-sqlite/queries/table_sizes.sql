-- Every table with the bytes of its pages and of its indexes' pages.
select tables.name, coalesce(sum(dbstat.pgsize), 0)
from sqlite_schema tables
left join sqlite_schema parts on parts.tbl_name = tables.name
left join dbstat on dbstat.name = parts.name and dbstat.aggregate = true
where tables.type = 'table' and tables.name not like 'sqlite\_%' escape '\'
group by tables.name
order by tables.name
