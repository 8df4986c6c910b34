-- Removes up to ?3 entries that nobody but this execution could use.
delete from keychain where rowid in (
    select rowid from keychain
    where tenant_id = ?2 and execution_id = ?1 and scope_type = 'local' limit ?3
)
