-- Where content goes that comes in parts. It ends with its transaction.
create temporary table noetl_spool (data bytea not null) on commit drop
