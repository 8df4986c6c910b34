-- One index entry per append instead of two per event. Rows of an append follow one another by place
-- and by position, so where its first one is says where all of them are: `append_rows` is how many
-- there are, on the first, and null on those behind it.
--
-- Event ids mostly grow along a log, and are then found by where they must be. `is_late` marks rows
-- of which that does not hold; only those have an entry of their own. An execution knows the largest
-- id of its log; one that does not is from before, and all its rows count as late.
--
-- Rows from before are appends of one row each, and late.
alter table event add column append_rows integer default 1;
alter table event add column is_late integer default 1;
alter table execution add column newest_event_id integer;

drop index event_place;
drop index event_id;
create unique index event_append on event (execution_id, seq) where append_rows is not null;
create unique index event_late on event (execution_id, event_id) where is_late = 1;
