//! Rows of `subscription` and `subscription_dedup`.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, SubscriptionId, Tenant};
use noetl_store::subscriptions::REGISTERED_EVENT;
use noetl_store::{
    NewSubscription, Reserved, StoreError, SubscriptionAction, SubscriptionRow, SubscriptionState,
    Subscriptions,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::column::{At, interval, parsed};
use crate::error::no_row;

#[async_trait]
impl Subscriptions for PostgresStore {
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError> {
        let action = "register a subscription";
        let sql = include_str!("../queries/subscription_register.sql");
        let make = || {
            sqlx::query(sql)
                .bind(new.id.get())
                .bind(tenant.as_str())
                .bind(&new.path)
                .bind(new.catalog.get())
                .bind(SubscriptionState::Registered.as_str())
                .bind(REGISTERED_EVENT)
        };
        let registered = self.change(action, make, subscription).await?;
        registered.into_iter().next().ok_or_else(|| no_row(action))
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
        let sql = include_str!("../queries/subscription_transition.sql");
        let make = || {
            sqlx::query(sql)
                .bind(id.get())
                .bind(tenant.as_str())
                .bind(from.as_str())
                .bind(action.to().as_str())
                .bind(action.event_type())
        };
        let moved = self.change("move a subscription", make, subscription).await?;
        Ok(moved.into_iter().next())
    }

    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<Reserved, StoreError> {
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
            Ok(if row.try_get(0)? { Reserved::New } else { Reserved::Known(known) })
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

fn subscription(row: &PgRow) -> Result<SubscriptionRow, sqlx::Error> {
    Ok(SubscriptionRow {
        id: SubscriptionId::new(row.try_get(0)?),
        path: row.try_get(1)?,
        catalog: CatalogId::new(row.try_get(2)?),
        state: parsed(row, 3, SubscriptionState::from_text)?,
        last_event: row.try_get(4)?,
        created_at: row.try_get::<At, _>(5)?.0,
        updated_at: row.try_get::<At, _>(6)?.0,
    })
}
