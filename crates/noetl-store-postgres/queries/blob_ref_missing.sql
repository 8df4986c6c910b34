-- Those of the given digests that no execution refers to, in their order.
select d.digest
from unnest($1::bytea[]) with ordinality d (digest, place)
where not exists (select from noetl.blob_ref r where r.digest = d.digest)
order by d.place
