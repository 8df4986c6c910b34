-- Removes content that was last written when it was seen and that nothing refers to.
delete from blob
where digest = ?1 and written_at = ?2
    and not exists (select 1 from blob_ref where blob_ref.digest = ?1)
