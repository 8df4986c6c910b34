-- A token of role worker may be bound to one pool.
alter table token add column pool text;

-- Grants. A path grant lets callers with a role act on documents below a prefix: one caller
-- (`subject`), or all of them where it is null. A credential grant lets playbooks below a prefix use
-- the credential that `target` names.
create table access_grant (
    grant_id text primary key,
    tenant_id text not null,
    kind text not null check (kind in ('path', 'credential')),
    target text not null,
    subject text,
    prefix text not null,
    created_at integer not null
) strict, without rowid;

create index access_grant_list on access_grant (tenant_id, created_at);
