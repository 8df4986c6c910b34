-- Removes what was published before a time; never what was not.
delete from outbox indexed by outbox_published
where status = 'PUBLISHED' and published_at <= ?1
