-- Adds an event to the log of a subscription.
select noetl.subscription_event_2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
