-- The chain of uses of secrets: every use has a link, which holds the digest of the use and of the
-- link before. A purge removes uses and leaves their links, so that what is missing is known. Uses
-- from before this have no link.
alter table noetl.secret_audit add column if not exists chain_seq bigint;
create unique index if not exists secret_audit_chain on noetl.secret_audit (chain_seq)
    where chain_seq is not null;

create table if not exists noetl.audit_link (
    seq bigint primary key check (seq > 0),
    occurred_at timestamptz not null,
    content_hash bytea not null check (length(content_hash) = 32),
    link_hash bytea not null check (length(link_hash) = 32)
);

-- The end of the chain, beside it: links that are cut off its end are missed. Who adds a link holds
-- this row, so that links are added one after the other.
create table if not exists noetl.audit_head (
    only_one smallint primary key check (only_one = 1),
    seq bigint not null,
    link_hash bytea not null
);

insert into noetl.audit_head (only_one, seq, link_hash)
values (1, 0, decode(repeat('00', 32), 'hex'))
on conflict do nothing;
