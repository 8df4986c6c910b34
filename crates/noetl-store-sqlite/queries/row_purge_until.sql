-- The place up to which the appends at the front of a log hold ?2 rows, or the first one alone when it
-- holds more.
select max(last) from (
    select seq + append_rows - 1 as last,
        sum(append_rows) over (order by seq) - append_rows as rows_before
    from event_row
    where execution_id = ?1 and append_rows is not null
    order by seq limit ?2
) where rows_before < ?2
