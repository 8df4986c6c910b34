-- Subscriptions have logs of their own, under their ids. The version is the place of the last event
-- ever written there; rows may be gone from the front.
alter table noetl.subscription add column if not exists version bigint not null default 0;

-- Subscriptions of an adopted log: another program kept their state in their events alone. Their
-- rows get places first, in the order they were written, so that what is added comes after them.
update noetl.event e set seq = n.seq
from (
    select o.execution_id, o.event_id,
        row_number() over (partition by o.execution_id order by o.created_at, o.event_id) as seq
    from noetl.event o
    where o.seq is null and o.origin = 'imported' and o.execution_id in (
        select r.execution_id from noetl.event r
        where r.event_type = 'subscription.registered' and r.origin = 'imported'
    )
) n
where e.execution_id = n.execution_id and e.event_id = n.event_id;

-- A path may have had several at once; the one that moved last is taken for the one, as its program
-- took it, and the others are over.
insert into noetl.subscription (
    id, tenant_id, path, catalog_id, state, last_event_type, created_at, updated_at, version
)
select
    s.id, s.tenant_id, s.path, s.catalog_id,
    case when s.is_newest then s.state else 'DEACTIVATED' end,
    case when s.is_newest then s.event_type else 'subscription.deactivated' end,
    s.created_at at time zone 'utc', s.updated_at at time zone 'utc', s.version
from (
    select l.*,
        row_number() over (
            partition by l.tenant_id, l.path
            order by (l.state <> 'DEACTIVATED') desc, l.updated_at desc, l.id desc
        ) = 1 as is_newest
    from (
        select distinct on (e.execution_id)
            e.execution_id as id, e.tenant_id, e.node_name as path,
            coalesce(e.catalog_id, 0) as catalog_id, e.status as state, e.event_type,
            min(e.created_at) over (partition by e.execution_id) as created_at,
            e.created_at as updated_at,
            (select max(a.seq) from noetl.event a where a.execution_id = e.execution_id) as version
        from noetl.event e
        where e.origin = 'imported' and e.node_name is not null
            and e.status in ('REGISTERED', 'ACTIVE', 'PAUSED', 'DRAINING', 'DEACTIVATED')
            and e.event_type in (
                'subscription.registered', 'subscription.activated', 'subscription.paused',
                'subscription.resumed', 'subscription.draining', 'subscription.deactivated'
            )
        order by e.execution_id, e.event_id desc
    ) l
    where l.version is not null
) s
on conflict do nothing;
