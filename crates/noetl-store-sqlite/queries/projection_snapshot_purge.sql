-- Removes up to ?3 snapshots of an execution, whatever they are of. Ids are unique over tenants.
delete from projection_snapshot where rowid in (
    select rowid from projection_snapshot
    where ?2 is not null and (aggregate_id = cast(?1 as text)
        or (aggregate_id > 'execution/' || ?1 || '/' and aggregate_id < 'execution/' || ?1 || '0'))
    limit ?3
)
