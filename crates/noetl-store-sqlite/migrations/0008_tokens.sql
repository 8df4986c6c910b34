-- Tokens of callers. What a holder shows is not here: only the hash of its secret part.
create table token (
    token_id text primary key,
    tenant_id text not null,
    hash text not null,
    name text not null,
    role text not null,
    created_at integer not null,
    expires_at integer,
    revoked_at integer
) strict, without rowid;

create index token_list on token (tenant_id, created_at);
