//! Rows of `subscription` and `subscription_dedup`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, SubscriptionId, Tenant, Timestamp};
use noetl_store::subscriptions::REGISTERED_EVENT;
use noetl_store::{
    NewSubscription, Reserved, StoreError, SubscriptionAction, SubscriptionRow, SubscriptionState,
    Subscriptions,
};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::parsed;

#[async_trait]
impl Subscriptions for SqliteStore {
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError> {
        let tenant = tenant.clone();
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
                now.as_micros(),
            ])?;
            live.query_row((tenant.as_str(), &new.path), subscription)
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

    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        if !action.from().contains(&from) {
            return Ok(None);
        }
        let tenant = tenant.clone();
        self.write("move a subscription", move |connection, now| {
            let sql = include_str!("../queries/subscription_transition.sql");
            let moved = connection.prepare_cached(sql)?.query_row(
                params![
                    id.get(),
                    tenant.as_str(),
                    from.as_str(),
                    action.to().as_str(),
                    action.event_type(),
                    now.as_micros(),
                ],
                subscription,
            );
            moved.optional()
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
    ) -> Result<Reserved, StoreError> {
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
                return Ok(Reserved::New);
            }
            let sql = include_str!("../queries/subscription_dedup_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            let given = (tenant.as_str(), subscription.get(), key);
            let known = get.query_row(given, |row| row.get(0))?;
            Ok(Reserved::Known(ExecutionId::new(known)))
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
