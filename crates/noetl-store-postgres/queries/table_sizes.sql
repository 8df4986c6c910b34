-- Every table that is no partition, with its rows and the bytes of all its parts.
select c.relname::text,
    (xpath('/row/n/text()', query_to_xml(
        format('select count(*) as n from noetl.%I', c.relname), false, true, ''
    )))[1]::text::bigint,
    case c.relkind
        when 'p' then (
            select coalesce(sum(pg_total_relation_size(part.relid)), 0)
            from pg_partition_tree(c.oid) part
        )::bigint
        else pg_total_relation_size(c.oid)
    end
from pg_class c
where c.relnamespace = 'noetl'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by c.relname
