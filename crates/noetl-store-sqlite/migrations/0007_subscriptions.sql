-- Subscriptions have logs of their own, under their ids. The version is the place of the last event
-- ever written there; rows may be gone from the front.
alter table subscription add column version integer not null default 0;
