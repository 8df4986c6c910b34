-- Content above a digest, in the order of digests, with the time; the time alone when there is none.
select now(), b.digest, b.bytes, b.written_at
from (select) always
left join (
    select digest, bytes, written_at from noetl.blob
    where digest > $1
    order by digest limit $2
) b on true
order by b.digest
