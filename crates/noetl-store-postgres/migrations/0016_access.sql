-- A token of role worker may be bound to one pool.
alter table noetl.token add column if not exists pool text;

-- Grants. A path grant lets callers with a role act on documents below a prefix: one caller
-- (`subject`), or all of them where it is null. A credential grant lets playbooks below a prefix use
-- the credential that `target` names.
create table if not exists noetl.access_grant (
    grant_id text collate "C" primary key,
    tenant_id text not null,
    kind text not null check (kind in ('path', 'credential')),
    target text not null,
    subject text,
    prefix text not null,
    created_at timestamptz not null default now()
);

create index if not exists access_grant_list on noetl.access_grant (tenant_id, created_at);
