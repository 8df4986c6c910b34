-- Executions that were not started here: whose rows came from elsewhere, with the columns they had
-- beside ours. Nothing drives them, so they are never unfinished work. Of several ends that came
-- with one, the one with the largest id counts.
alter table event add column more text;

alter table execution add column origin text not null default 'own'
    check (origin in ('own', 'imported'));
alter table execution add column terminal_event_id integer;

drop index execution_unfinished;
create index execution_unfinished on execution (id) where ended_at is null and origin = 'own';
