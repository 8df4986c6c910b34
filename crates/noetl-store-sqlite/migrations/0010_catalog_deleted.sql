-- A version of a document that is deleted stays for the executions that were started from it.
alter table catalog add column deleted_at integer;
