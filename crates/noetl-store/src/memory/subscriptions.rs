//! Subscriptions in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, SubscriptionId, Tenant, Timestamp};

use super::MemoryStore;
use crate::subscriptions::REGISTERED_EVENT;
use crate::{
    NewSubscription, Reserved, StoreError, SubscriptionAction, SubscriptionRow, SubscriptionState,
    Subscriptions,
};

/// Every subscription there ever was, and the messages they have seen.
#[derive(Debug, Default)]
pub(super) struct SubscriptionTable {
    rows: BTreeMap<SubscriptionId, (Tenant, SubscriptionRow)>,
    pub(super) seen: BTreeMap<(Tenant, SubscriptionId, String), (ExecutionId, Timestamp)>,
}

impl SubscriptionTable {
    fn of(&self, tenant: &Tenant) -> impl Iterator<Item = &SubscriptionRow> {
        let mine = self.rows.values().filter(move |(owner, _)| owner == tenant);
        mine.map(|(_, row)| row)
    }

    /// The one subscription of this path that is not deactivated.
    fn live_at(&self, tenant: &Tenant, path: &str) -> Option<&SubscriptionRow> {
        let is_live = |row: &&SubscriptionRow| row.state != SubscriptionState::Deactivated;
        self.of(tenant).filter(is_live).find(|row| row.path == path)
    }
}

#[async_trait]
impl Subscriptions for MemoryStore {
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let table = &mut state.subscriptions;
        if let Some(known) = table.live_at(tenant, &new.path) {
            return Ok(known.clone());
        }
        if table.rows.contains_key(&new.id) {
            let taken = format!("subscription {} exists already", new.id);
            return Err(StoreError::backend("register a subscription", taken));
        }
        let row = SubscriptionRow {
            id: new.id,
            path: new.path,
            catalog: new.catalog,
            state: SubscriptionState::Registered,
            last_event: REGISTERED_EVENT.into(),
            created_at: now,
            updated_at: now,
        };
        table.rows.insert(row.id, (tenant.clone(), row.clone()));
        Ok(row)
    }

    async fn subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        let state = self.state();
        let known = state.subscriptions.rows.get(&id).filter(|(owner, _)| owner == tenant);
        Ok(known.map(|(_, row)| row.clone()))
    }

    async fn subscriptions(&self, tenant: &Tenant) -> Result<Vec<SubscriptionRow>, StoreError> {
        Ok(self.state().subscriptions.of(tenant).cloned().collect())
    }

    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let table = &mut state.subscriptions;
        let found = table.of(tenant).find(|row| row.id == id);
        let Some(row) = found.filter(|row| row.state == from && action.from().contains(&from))
        else {
            return Ok(None);
        };
        let is_live = action.to() != SubscriptionState::Deactivated;
        let rival = table.live_at(tenant, &row.path).filter(|live| is_live && live.id != id);
        if rival.is_some() {
            return Ok(None);
        }
        let Some((_, row)) = table.rows.get_mut(&id) else {
            return Ok(None);
        };
        row.state = action.to();
        row.last_event = action.event_type().into();
        row.updated_at = now;
        Ok(Some(row.clone()))
    }

    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<Reserved, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let key = (tenant.clone(), subscription, key.to_owned());
        match state.subscriptions.seen.get(&key) {
            Some((known, at)) if *at > now.minus(window) => Ok(Reserved::Known(*known)),
            Some(_) | None => {
                state.subscriptions.seen.insert(key, (execution, now));
                Ok(Reserved::New)
            }
        }
    }

    async fn unreserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let key = (tenant.clone(), subscription, key.to_owned());
        let seen = &mut state.subscriptions.seen;
        let is_own = seen.get(&key).is_some_and(|(known, _)| *known == execution);
        Ok(is_own && seen.remove(&key).is_some())
    }

    async fn prune_reserved(&self, older_than: Duration) -> Result<usize, StoreError> {
        let mut state = self.state();
        let until = self.clock.now().minus(older_than);
        let before = state.subscriptions.seen.len();
        state.subscriptions.seen.retain(|_, (_, at)| *at > until);
        Ok(before - state.subscriptions.seen.len())
    }
}
