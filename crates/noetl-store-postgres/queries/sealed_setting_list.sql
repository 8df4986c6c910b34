-- Settings after a name, by the bytes of the name.
select name, data_encrypted from noetl.sealed_setting
where $1::text is null or name > $1
order by name limit $2
