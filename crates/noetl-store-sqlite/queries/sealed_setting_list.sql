-- Settings after a name, by name.
select name, data_encrypted from sealed_setting
where ?1 is null or name > ?1
order by name limit ?2
