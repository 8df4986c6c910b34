-- The chain of uses of secrets: every use has a link, which holds the digest of the use and of the
-- link before. A purge removes uses and leaves their links, so that what is missing is known. Uses
-- from before this have no link.
alter table secret_audit add column chain_seq integer;
create unique index secret_audit_chain on secret_audit (chain_seq) where chain_seq is not null;

create table audit_link (
    seq integer primary key check (seq > 0),
    occurred_at integer not null,
    content_hash blob not null check (length(content_hash) = 32),
    link_hash blob not null check (length(link_hash) = 32)
) strict;

-- The end of the chain, beside it: links that are cut off its end are missed.
create table audit_head (
    only_one integer primary key check (only_one = 1),
    seq integer not null,
    link_hash blob not null
) strict;

insert into audit_head (only_one, seq, link_hash) values (1, 0, zeroblob(32));
