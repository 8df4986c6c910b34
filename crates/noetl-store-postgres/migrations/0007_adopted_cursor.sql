-- The published tailer notes the last event id it published under the name that ours uses for the
-- position in its first lane. In an adopted database it is where to go on with the adopted rows.
do $$
begin
    if to_regclass('noetl.adoption') is null then
        return;
    end if;
    update noetl.stream_cursor c
    set name = 'event_stream_tailer:adopted'
    where c.name = 'event_stream_tailer'
        and c.position > (select l.position from noetl.lane l where l.lane = 0)
        and not exists (
            select from noetl.stream_cursor o where o.name = 'event_stream_tailer:adopted'
        );
end
$$;
