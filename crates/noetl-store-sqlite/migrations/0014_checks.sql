-- What is compared with a list is compared with a table of it, which SQLite makes and drops again for
-- every statement that adds a row. Compared one by one it makes none.
--
-- That a check is written in other words changes no row, so the table stays where it is and only what
-- is written of it is replaced.
pragma writable_schema = on;
update sqlite_schema set sql = replace(
    sql,
    'check (origin in (''decided'', ''reported'', ''imported''))',
    'check (origin = ''decided'' or origin = ''reported'' or origin = ''imported'')'
) where type = 'table' and name = 'event';
pragma writable_schema = reset;

-- An execution ends once.
drop index event_end;
create unique index event_end on event (execution_id)
    where origin = 'decided' and (
        event_type = 'playbook.completed' or event_type = 'playbook.failed'
        or event_type = 'playbook_cancelled'
    );
