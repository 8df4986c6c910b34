-- Tokens of callers. What a holder shows is not here: only the hash of its secret part.
create table if not exists noetl.token (
    token_id text collate "C" primary key,
    tenant_id text not null,
    hash text not null,
    name text not null,
    role text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    is_first boolean not null default false
);

create index if not exists token_list on noetl.token (tenant_id, created_at);
-- Of several servers that start at a time on an empty database, one makes the first token.
create unique index if not exists token_first on noetl.token (is_first) where is_first;
