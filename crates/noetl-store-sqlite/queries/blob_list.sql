-- Content above a digest, in the order of digests.
select digest, bytes, written_at from blob
where digest > ?1
order by digest limit ?2
