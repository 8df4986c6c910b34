//! Implements [`SubscriptionStore`]: subscriptions, their dedup keys, and their event logs.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::event::SubscriptionEvent;
use noetl_model::row::EventRow;
use noetl_model::row::body::AppendRow;
use noetl_model::{CatalogId, Event, EventId, ExecutionId, Seq, SubscriptionId, Tenant};
use noetl_store::outbox::{CODEC, Envelope, subject};
use noetl_store::subscriptions::REGISTERED_EVENT;
use noetl_store::{
    DedupOutcome, EventStamp, NewRuntimeEvent, NewSubscription, RuntimeEventOutcome, StoreError,
    SubscriptionAction, SubscriptionRow, SubscriptionState, SubscriptionStore,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::PostgresStore;
use crate::append_mode::AppendMode;
use crate::arrays::{plain, stored_seq};
use crate::column::{PgTimestamp, PgTimestamptz, interval, number, parsed};
use crate::error::{StatementOutcome, fate, no_row, write_error};
use crate::event_rows::found_seq;

/// Maximum number of attempts of a transaction that the server rolls back because of conflicts.
const TRIES_MAX: usize = 10;

/// Runs work in a transaction, and retries if the server rolls it back because of a conflict.
macro_rules! in_one {
    ($store:expr, $action:literal, |$connection:ident| $work:expr) => {{
        let mut tries = 1;
        loop {
            let mut transaction = $store.begin($action).await?;
            let $connection = &mut *transaction;
            let done = match $work.await {
                Ok(done) => transaction.commit().await.map(|()| done),
                Err(error) => Err(error),
            };
            match done {
                Ok(done) => break Ok(done),
                Err(error) if tries < TRIES_MAX && fate(&error) == StatementOutcome::Retry => {
                    tries += 1
                }
                Err(error) => break Err(write_error($action, error)),
            }
        }
    }};
}

#[async_trait]
impl SubscriptionStore for PostgresStore {
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError> {
        in_one!(self, "register a subscription", |connection| register(
            connection,
            self.how(),
            tenant,
            &new
        ))
    }

    async fn subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        let sql = include_str!("../queries/subscription_get.sql");
        let make = || sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
        self.one("read a subscription", make, subscription).await
    }

    async fn subscriptions(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, StoreError> {
        let sql = include_str!("../queries/subscription_list.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str());
        self.list("list subscriptions", make, subscription).await
    }

    async fn logs_of_subscriptions(
        &self,
        logs: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let ids: Vec<i64> = logs.iter().map(|id| id.get()).collect();
        let sql = "select id from noetl.subscription where id = any ($1)";
        let found = self.list(
            "look for subscriptions",
            || sqlx::query(sql).bind(ids.clone()),
            |row| Ok(ExecutionId::new(row.try_get(0)?)),
        );
        Ok(found.await?.into_iter().collect())
    }

    async fn subscription_counts(&self) -> Result<Vec<(SubscriptionState, u64)>, StoreError> {
        let sql = "select state, count(*) from noetl.subscription group by state";
        let decode =
            |row: &PgRow| Ok((parsed(row, 0, SubscriptionState::from_text)?, number(row, 1)?));
        self.list("count subscriptions", || sqlx::query(sql), decode).await
    }

    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
        stamp: EventStamp,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        if !action.from().contains(&from) {
            return Ok(None);
        }
        in_one!(self, "move a subscription", |connection| move_on(
            connection,
            self.how(),
            tenant,
            (id, from),
            (action, stamp)
        ))
    }

    async fn note_subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        said: NewRuntimeEvent,
    ) -> Result<Option<RuntimeEventOutcome>, StoreError> {
        in_one!(self, "note what is said of a subscription", |connection| note(
            connection,
            self.how(),
            tenant,
            id,
            &said
        ))
    }

    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<DedupOutcome, StoreError> {
        let action = "reserve a message";
        let sql =
            "select is_new, execution_id from noetl.subscription_reserve_1($1, $2, $3, $4, $5)";
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(subscription.get())
                .bind(key)
                .bind(execution.get())
                .bind(interval(window))
        };
        let decode = |row: &PgRow| {
            let known = ExecutionId::new(row.try_get(1)?);
            Ok(if row.try_get(0)? { DedupOutcome::New } else { DedupOutcome::Known(known) })
        };
        let reserved = self.change(action, make, decode).await?;
        reserved.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn unreserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
    ) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/subscription_dedup_release.sql");
        let make = || {
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(subscription.get());
            query.bind(key).bind(execution.get())
        };
        Ok(self.touch("give a message back", make).await? == 1)
    }

    async fn prune_reserved(&self, older_than: Duration) -> Result<usize, StoreError> {
        let sql = "delete from noetl.subscription_dedup where seen_at <= now() - $1";
        self.touch("prune messages", || sqlx::query(sql).bind(interval(older_than))).await
    }
}

async fn register(
    connection: &mut PgConnection,
    how: &AppendMode,
    tenant: &Tenant,
    new: &NewSubscription,
) -> Result<SubscriptionRow, sqlx::Error> {
    let sql = include_str!("../queries/subscription_register.sql");
    let registered = sqlx::query(sql)
        .persistent(!how.speaker.is_pooled)
        .bind(new.id.get())
        .bind(tenant.as_str())
        .bind(plain(&new.path))
        .bind(new.catalog.get())
        .bind(SubscriptionState::Registered.as_str())
        .bind(REGISTERED_EVENT)
        .bind(PgTimestamptz(new.stamp.at))
        .fetch_one(&mut *connection)
        .await?;
    let row = subscription(&registered)?;
    if registered.try_get(7)? {
        let event = row.moved(SubscriptionEvent::Registered, new.stamp, Seq(1));
        tell(connection, how, (tenant, row.catalog), &event).await?;
    }
    Ok(row)
}

async fn move_on(
    connection: &mut PgConnection,
    how: &AppendMode,
    tenant: &Tenant,
    (id, from): (SubscriptionId, SubscriptionState),
    (action, stamp): (SubscriptionAction, EventStamp),
) -> Result<Option<SubscriptionRow>, sqlx::Error> {
    let sql = include_str!("../queries/subscription_transition.sql");
    let moved = sqlx::query(sql)
        .persistent(!how.speaker.is_pooled)
        .bind(id.get())
        .bind(tenant.as_str())
        .bind(from.as_str())
        .bind(action.target_state().as_str())
        .bind(action.event_type())
        .bind(PgTimestamptz(stamp.at))
        .fetch_optional(&mut *connection)
        .await?;
    let Some(moved) = moved else { return Ok(None) };
    let row = subscription(&moved)?;
    let event = row.moved(action.lifecycle(), stamp, Seq(number(&moved, 7)?));
    tell(connection, how, (tenant, row.catalog), &event).await?;
    Ok(Some(row))
}

async fn note(
    connection: &mut PgConnection,
    how: &AppendMode,
    tenant: &Tenant,
    id: SubscriptionId,
    said: &NewRuntimeEvent,
) -> Result<Option<RuntimeEventOutcome>, sqlx::Error> {
    let is_kept = !how.speaker.is_pooled;
    // Lock the row before the search, so that the second of two concurrent calls sees the first.
    let sql = "select 1 from noetl.subscription where id = $1 and tenant_id = $2 for no key update";
    let held = sqlx::query(sql).persistent(is_kept).bind(id.get()).bind(tenant.as_str());
    if held.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(None);
    }
    let sql = include_str!("../queries/event_find.sql");
    let seen = sqlx::query(sql).persistent(is_kept).bind(id.get()).bind(said.asked().get());
    let seen = seen.fetch_one(&mut *connection).await?;
    if found_seq(&seen, ExecutionId::new(id.get()), said.asked())?.is_some() {
        return Ok(Some(RuntimeEventOutcome::Repeated));
    }
    let sql = include_str!("../queries/subscription_place.sql");
    let place = sqlx::query(sql).persistent(is_kept).bind(id.get()).bind(tenant.as_str());
    let place = place.fetch_one(&mut *connection).await?;
    let event = said.clone().event(id, Seq(number(&place, 1)?));
    tell(connection, how, (tenant, CatalogId::new(place.try_get(0)?)), &event).await?;
    Ok(Some(RuntimeEventOutcome::Kept))
}

/// Appends an event to the log of a subscription, whose row is locked.
async fn tell(
    connection: &mut PgConnection,
    how: &AppendMode,
    (tenant, catalog): (&Tenant, CatalogId),
    event: &Event,
) -> Result<(), sqlx::Error> {
    let is_kept = !how.speaker.is_pooled;
    let row = EventRow::from(event);
    let mut payload = None;
    if how.has_outbox {
        let sql = include_str!("../queries/subscription_previous.sql");
        let find = sqlx::query(sql).persistent(is_kept);
        let find = find.bind(row.execution_id.get()).bind(stored_seq(row.seq) - 1);
        let found: Option<i64> = find.fetch_one(&mut *connection).await?.try_get(0)?;
        let previous = found.map(EventId::new);
        let envelope = Envelope { tenant, catalog, previous, row: &row };
        let text = envelope.payload().map_err(|error| sqlx::Error::Encode(error.into()))?;
        payload = Some(text);
    }
    let sql = include_str!("../queries/subscription_event.sql");
    for append in AppendRow::encode(std::slice::from_ref(&row)) {
        sqlx::query(sql)
            .persistent(is_kept)
            .bind(how.speaker.lane)
            .bind(tenant.as_str())
            .bind(row.execution_id.get())
            .bind(stored_seq(row.seq))
            .bind(row.event_id.get())
            .bind(PgTimestamp(row.created_at))
            .bind(append.body)
            .bind(row.idempotency_key)
            .bind(subject(row.event_type.as_deref()))
            .bind(payload.as_deref())
            .bind(CODEC)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

fn subscription(row: &PgRow) -> Result<SubscriptionRow, sqlx::Error> {
    Ok(SubscriptionRow {
        id: SubscriptionId::new(row.try_get(0)?),
        path: row.try_get(1)?,
        catalog: CatalogId::new(row.try_get(2)?),
        state: parsed(row, 3, SubscriptionState::from_text)?,
        last_event: row.try_get(4)?,
        created_at: row.try_get::<PgTimestamptz, _>(5)?.0,
        updated_at: row.try_get::<PgTimestamptz, _>(6)?.0,
    })
}
