-- Removes from the front of a command's tail, which begins after $3, until it is $4 bytes shorter at
-- least; a line counts for $5 besides its text. What went, in lines and bytes.
with tail as (
    select n, octet_length(text) + $5 as bytes,
        sum(octet_length(text) + $5) over (order by n) as until_here
    from noetl.log
    where execution_id = $1 and command_id = $2 and n > $3
), gone as (
    delete from noetl.log l using tail t
    where l.execution_id = $1 and l.n = t.n and t.until_here - t.bytes < $4
    returning t.bytes
)
select count(*), coalesce(sum(bytes), 0)::bigint from gone
