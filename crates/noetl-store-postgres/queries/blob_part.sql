-- How much there is of content, and a part of it.
select octet_length(data)::bigint, substring(data from $2 for $3) from noetl.blob where digest = $1
