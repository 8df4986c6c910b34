-- Claims what is ready or whose claim is over (?2 is when such a claim began at the latest), up to
-- ?4 bytes of payload, but one row however large it is.
update outbox set status = 'IN_FLIGHT', attempts = attempts + 1, locked_at = ?1, updated_at = ?1
where outbox_id in (
    select outbox_id from (
        select
            outbox_id,
            sum(bytes) over (order by outbox_id) as bytes,
            row_number() over (order by outbox_id) as place
        from (
            select outbox_id, octet_length(payload) as bytes from outbox indexed by outbox_open
            where status <> 'PUBLISHED'
                and (case status when 'IN_FLIGHT' then locked_at <= ?2 else available_at <= ?1 end)
            order by outbox_id limit ?3
        )
    )
    where bytes <= ?4 or place = 1
)
returning outbox_id, tenant_id, event_id, execution_id, subject, payload, payload_codec, attempts,
    last_error
