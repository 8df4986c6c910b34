//! Implements [`SubscriptionStore`]: subscriptions, their dedup keys, and their event logs.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::event::SubscriptionEvent;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, ExecutionId, Seq, SubscriptionId, Tenant, Timestamp};
use noetl_store::subscriptions::REGISTERED_EVENT;
use noetl_store::{
    DedupOutcome, EventStamp, NewRuntimeEvent, NewSubscription, RuntimeEventOutcome, StoreError,
    SubscriptionAction, SubscriptionRow, SubscriptionState, SubscriptionStore,
};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::append::append_row;
use crate::column::{count, parsed};
use crate::event_search;

#[async_trait]
impl SubscriptionStore for SqliteStore {
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError> {
        let (tenant, has_outbox) = (tenant.clone(), self.outbox().is_on);
        self.write("register a subscription", move |connection, now| {
            let sql = include_str!("../queries/subscription_live.sql");
            let mut live = connection.prepare_cached(sql)?;
            let known = live.query_row((tenant.as_str(), &new.path), subscription).optional()?;
            if let Some(known) = known {
                return Ok(known);
            }
            let sql = include_str!("../queries/subscription_register.sql");
            connection.prepare_cached(sql)?.execute(params![
                new.id.get(),
                tenant.as_str(),
                new.path,
                new.catalog.get(),
                SubscriptionState::Registered.as_str(),
                REGISTERED_EVENT,
                new.stamp.at.as_micros(),
            ])?;
            let row = live.query_row((tenant.as_str(), &new.path), subscription)?;
            let event =
                EventRow::from(&row.moved(SubscriptionEvent::Registered, new.stamp, Seq(1)));
            let outbox = has_outbox.then_some(now);
            append_row(connection, (&tenant, row.catalog), &event, outbox)?;
            Ok(row)
        })
        .await
    }

    async fn subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        let tenant = tenant.clone();
        self.read("read a subscription", move |connection| {
            let sql = include_str!("../queries/subscription_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((id.get(), tenant.as_str()), subscription).optional()
        })
        .await
    }

    async fn subscriptions(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, StoreError> {
        let tenant = tenant.clone();
        self.read("list subscriptions", move |connection| {
            let sql = include_str!("../queries/subscription_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map([tenant.as_str()], subscription)?.collect()
        })
        .await
    }

    async fn logs_of_subscriptions(
        &self,
        logs: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let logs = logs.to_vec();
        self.read("look for subscriptions", move |connection| {
            let mut find = connection.prepare_cached("select 1 from subscription where id = ?1")?;
            let mut found = HashSet::new();
            for id in logs {
                if find.exists([id.get()])? {
                    found.insert(id);
                }
            }
            Ok(found)
        })
        .await
    }

    async fn subscription_counts(&self) -> Result<Vec<(SubscriptionState, u64)>, StoreError> {
        self.read("count subscriptions", |connection| {
            let sql = "select state, count(*) from subscription group by state";
            let mut counts = connection.prepare_cached(sql)?;
            let row =
                |row: &Row<'_>| Ok((parsed(row, 0, SubscriptionState::from_text)?, count(row, 1)?));
            counts.query_map([], row)?.collect()
        })
        .await
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
        let (tenant, has_outbox) = (tenant.clone(), self.outbox().is_on);
        self.write("move a subscription", move |connection, now| {
            let sql = include_str!("../queries/subscription_transition.sql");
            let moved = connection.prepare_cached(sql)?.query_row(
                params![
                    id.get(),
                    tenant.as_str(),
                    from.as_str(),
                    action.target_state().as_str(),
                    action.event_type(),
                    stamp.at.as_micros(),
                ],
                |row| Ok((subscription(row)?, Seq(count(row, 7)?))),
            );
            let Some((row, version)) = moved.optional()? else { return Ok(None) };
            let event = EventRow::from(&row.moved(action.lifecycle(), stamp, version));
            let outbox = has_outbox.then_some(now);
            append_row(connection, (&tenant, row.catalog), &event, outbox)?;
            Ok(Some(row))
        })
        .await
    }

    async fn note_subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        note: NewRuntimeEvent,
    ) -> Result<Option<RuntimeEventOutcome>, StoreError> {
        let (tenant, has_outbox) = (tenant.clone(), self.outbox().is_on);
        self.write("note what is said of a subscription", move |connection, now| {
            let sql = "select catalog_id, version + 1 from subscription \
                       where id = ?1 and tenant_id = ?2";
            let mut find = connection.prepare_cached(sql)?;
            let found = find.query_row((id.get(), tenant.as_str()), |row| {
                Ok((CatalogId::new(row.get(0)?), Seq(count(row, 1)?)))
            });
            let Some((catalog, place)) = found.optional()? else { return Ok(None) };
            let seen = event_search::find_indexed(connection, id.log(), note.asked())?;
            if seen.is_some() {
                return Ok(Some(RuntimeEventOutcome::Repeated));
            }
            let sql = "update subscription set version = version + 1 where id = ?1";
            connection.prepare_cached(sql)?.execute([id.get()])?;
            let event = EventRow::from(&note.event(id, place));
            append_row(connection, (&tenant, catalog), &event, has_outbox.then_some(now))?;
            Ok(Some(RuntimeEventOutcome::Kept))
        })
        .await
    }

    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<DedupOutcome, StoreError> {
        let (tenant, key) = (tenant.clone(), key.to_owned());
        self.write("reserve a message", move |connection, now| {
            let sql = include_str!("../queries/subscription_dedup_reserve.sql");
            let reserved = connection.prepare_cached(sql)?.execute(params![
                tenant.as_str(),
                subscription.get(),
                key,
                execution.get(),
                now.as_micros(),
                now.minus(window).as_micros(),
            ])?;
            if reserved == 1 {
                return Ok(DedupOutcome::New);
            }
            let sql = include_str!("../queries/subscription_dedup_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            let given = (tenant.as_str(), subscription.get(), key);
            let known = get.query_row(given, |row| row.get(0))?;
            Ok(DedupOutcome::Known(ExecutionId::new(known)))
        })
        .await
    }

    async fn unreserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
    ) -> Result<bool, StoreError> {
        let (tenant, key) = (tenant.clone(), key.to_owned());
        self.write("give a message back", move |connection, _| {
            let sql = include_str!("../queries/subscription_dedup_release.sql");
            let mut release = connection.prepare_cached(sql)?;
            let given = (tenant.as_str(), subscription.get(), key, execution.get());
            Ok(release.execute(given)? == 1)
        })
        .await
    }

    async fn prune_reserved(&self, older_than: Duration) -> Result<usize, StoreError> {
        self.write("prune messages", move |connection, now| {
            let sql = "delete from subscription_dedup where seen_at <= ?1";
            connection.prepare_cached(sql)?.execute([now.minus(older_than).as_micros()])
        })
        .await
    }
}

fn subscription(row: &Row<'_>) -> rusqlite::Result<SubscriptionRow> {
    Ok(SubscriptionRow {
        id: SubscriptionId::new(row.get(0)?),
        path: row.get(1)?,
        catalog: CatalogId::new(row.get(2)?),
        state: parsed(row, 3, SubscriptionState::from_text)?,
        last_event: row.get(4)?,
        created_at: Timestamp::from_micros(row.get(5)?),
        updated_at: Timestamp::from_micros(row.get(6)?),
    })
}
