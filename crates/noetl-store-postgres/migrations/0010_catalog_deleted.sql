-- A version of a document that is deleted stays for the executions that were started from it.
alter table noetl.catalog add column if not exists deleted_at timestamptz;

-- Results are looked for by the end of their key.
create index if not exists object_store_by_end
    on noetl.object_store ((reverse(object_key)) collate "C");
