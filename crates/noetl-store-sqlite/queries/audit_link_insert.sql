-- Adds a link at the end of the chain.
insert into audit_link (seq, occurred_at, content_hash, link_hash) values (?1, ?2, ?3, ?4)
