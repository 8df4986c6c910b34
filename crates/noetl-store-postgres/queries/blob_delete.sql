-- Removes content that was last written when it was seen and that nothing refers to.
delete from noetl.blob
where digest = $1 and written_at = $2
    and not exists (select from noetl.blob_ref where blob_ref.digest = $1)
