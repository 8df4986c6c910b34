-- Claims what is ready or whose claim is over, smallest id first. Rows that another publisher is
-- about to claim are passed over. What another program wrote may lack something, and must not keep
-- the rest from going out. Up to $3 bytes of payload, but one row however large it is.
with open as (
    select outbox_id, octet_length(coalesce(body, payload::text, 'null')) as bytes from noetl.outbox
    where status <> 'PUBLISHED'
        and case status
            when 'IN_FLIGHT' then locked_at is null or locked_at <= now() - $1
            else available_at <= now()
        end
    order by outbox_id limit $2
    for update skip locked
), ready as materialized (
    select outbox_id from (
        select
            outbox_id,
            sum(bytes) over (order by outbox_id) as bytes,
            row_number() over (order by outbox_id) as place
        from open
    ) counted
    where bytes <= $3 or place = 1
), claimed as (
    update noetl.outbox o set
        status = 'IN_FLIGHT', attempts = least(o.attempts, 2147483646) + 1, locked_at = now(),
        published_at = null, updated_at = now()
    from ready
    where o.outbox_id = ready.outbox_id
    returning o.*
)
select outbox_id, tenant_id, event_id, execution_id, subject, coalesce(body, payload::text, 'null'),
    payload_codec, attempts, last_error
from claimed
order by outbox_id
