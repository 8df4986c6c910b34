//! [`SubscriptionStore`] of the in-memory store.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::event::SubscriptionEvent;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, Event, ExecutionId, Seq, SubscriptionId, Tenant, Timestamp};

use super::MemoryStore;
use super::state::MemoryState;
use crate::retention::{PartitionTally, PurgeDecision};
use crate::subscriptions::REGISTERED_EVENT;
use crate::{
    DedupOutcome, EventStamp, NewRuntimeEvent, NewSubscription, RuntimeEventOutcome, StoreError,
    SubscriptionAction, SubscriptionRow, SubscriptionState, SubscriptionStore,
};

/// All subscriptions with their logs, and the messages they have seen.
#[derive(Debug, Default)]
pub(super) struct SubscriptionTable {
    rows: BTreeMap<SubscriptionId, (Tenant, SubscriptionRow)>,
    pub(super) logs: BTreeMap<SubscriptionId, Log>,
    pub(super) seen: BTreeMap<(Tenant, SubscriptionId, String), (ExecutionId, Timestamp)>,
}

/// The log of a subscription. Rows may be purged from its front, so it counts sequence numbers
/// itself.
#[derive(Debug, Default)]
pub(super) struct Log {
    version: Seq,
    pub(super) rows: Vec<EventRow>,
}

impl SubscriptionTable {
    /// Returns the log with this ID if it belongs to a subscription.
    pub(super) fn log(&self, id: ExecutionId) -> Option<&[EventRow]> {
        self.logs.get(&SubscriptionId::new(id.get())).map(|log| &*log.rows)
    }

    /// Returns the tenant and catalog entry of a subscription.
    pub(super) fn owner(&self, id: ExecutionId) -> Option<(&Tenant, CatalogId)> {
        let (tenant, row) = self.rows.get(&SubscriptionId::new(id.get()))?;
        Some((tenant, row.catalog))
    }

    /// Returns all subscriptions of all tenants.
    pub(super) fn every(&self) -> impl Iterator<Item = &SubscriptionRow> {
        self.rows.values().map(|(_, row)| row)
    }

    /// Removes the logs of subscriptions that have ended and returns the number of their events. A
    /// dry run only counts them.
    pub(super) fn purge_logs(
        &mut self,
        since: Timestamp,
        tally: &mut PartitionTally,
        dry_run: bool,
    ) -> u64 {
        let mut events = 0;
        for (id, log) in &mut self.logs {
            let Some((_, row)) = self.rows.get(id).filter(|_| !log.rows.is_empty()) else {
                continue;
            };
            let fate = PurgeDecision::of_subscription(row.state, row.updated_at, since);
            tally.note(id.log(), fate);
            if fate == PurgeDecision::Goes {
                events += u64::try_from(log.rows.len()).unwrap_or(u64::MAX);
                if !dry_run {
                    log.rows.clear();
                }
            }
        }
        events
    }

    fn rows_of(&self, tenant: &Tenant) -> impl Iterator<Item = &SubscriptionRow> {
        let mine = self.rows.values().filter(move |(owner, _)| owner == tenant);
        mine.map(|(_, row)| row)
    }

    /// Returns the subscription of this path that is not deactivated. There is at most one.
    fn live_at(&self, tenant: &Tenant, path: &str) -> Option<&SubscriptionRow> {
        let is_live = |row: &&SubscriptionRow| row.state != SubscriptionState::Deactivated;
        self.rows_of(tenant).filter(is_live).find(|row| row.path == path)
    }
}

impl MemoryState {
    /// Adds an event to a subscription's log and to the outbox.
    fn tell(
        &mut self,
        tenant: &Tenant,
        catalog: CatalogId,
        id: SubscriptionId,
        now: Timestamp,
        event: impl FnOnce(Seq) -> Event,
    ) {
        let log = self.subscriptions.logs.entry(id).or_default();
        log.version = log.version.next();
        let row = EventRow::from(&event(log.version));
        let previous = log.rows.last().map(|row| row.event_id);
        log.rows.push(row.clone());
        self.newest = self.newest.max(Some(row.event_id));
        self.positions.give(row.execution_id, row.seq);
        self.outbox.add((tenant, catalog), &[row], previous, now);
    }
}

#[async_trait]
impl SubscriptionStore for MemoryStore {
    async fn register_subscription(
        &self,
        tenant: &Tenant,
        new: NewSubscription,
    ) -> Result<SubscriptionRow, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let is_execution = state.executions.contains_key(&new.id.log());
        let table = &mut state.subscriptions;
        if let Some(known) = table.live_at(tenant, &new.path) {
            return Ok(known.clone());
        }
        if is_execution || table.rows.contains_key(&new.id) {
            let taken = format!("subscription {} exists already", new.id);
            return Err(StoreError::backend("register a subscription", taken));
        }
        let row = SubscriptionRow {
            id: new.id,
            path: new.path,
            catalog: new.catalog,
            state: SubscriptionState::Registered,
            last_event: REGISTERED_EVENT.into(),
            created_at: new.stamp.at,
            updated_at: new.stamp.at,
        };
        table.rows.insert(row.id, (tenant.clone(), row.clone()));
        let event = |seq| row.moved(SubscriptionEvent::Registered, new.stamp, seq);
        state.tell(tenant, row.catalog, row.id, now, event);
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
        Ok(self.state().subscriptions.rows_of(tenant).cloned().collect())
    }

    async fn logs_of_subscriptions(
        &self,
        logs: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let state = self.state();
        let is_one = |id: &&ExecutionId| state.subscriptions.owner(**id).is_some();
        Ok(logs.iter().filter(is_one).copied().collect())
    }

    async fn subscription_counts(&self) -> Result<Vec<(SubscriptionState, u64)>, StoreError> {
        let state = self.state();
        let counts = SubscriptionState::ALL.map(|of| {
            let count = state.subscriptions.every().filter(|row| row.state == of).count();
            (of, u64::try_from(count).unwrap_or(u64::MAX))
        });
        Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    async fn transition(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
        stamp: EventStamp,
    ) -> Result<Option<SubscriptionRow>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let table = &mut state.subscriptions;
        let found = table.rows_of(tenant).find(|row| row.id == id);
        let Some(row) = found.filter(|row| row.state == from && action.from().contains(&from))
        else {
            return Ok(None);
        };
        let is_live = action.target_state() != SubscriptionState::Deactivated;
        let rival = table.live_at(tenant, &row.path).filter(|live| is_live && live.id != id);
        if rival.is_some() {
            return Ok(None);
        }
        let Some((_, row)) = table.rows.get_mut(&id) else {
            return Ok(None);
        };
        row.state = action.target_state();
        row.last_event = action.event_type().into();
        row.updated_at = stamp.at;
        let row = row.clone();
        let event = |seq| row.moved(action.lifecycle(), stamp, seq);
        state.tell(tenant, row.catalog, id, now, event);
        Ok(Some(row))
    }

    async fn note_subscription(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        note: NewRuntimeEvent,
    ) -> Result<Option<RuntimeEventOutcome>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let found = state.subscriptions.rows_of(tenant).find(|row| row.id == id);
        let Some(catalog) = found.map(|row| row.catalog) else { return Ok(None) };
        let (asked, log) = (note.asked(), state.subscriptions.log(id.log()));
        let is_it =
            |row: &EventRow| row.event_id == asked || row.idempotency_key == Some(asked.get());
        if log.unwrap_or_default().iter().any(is_it) {
            return Ok(Some(RuntimeEventOutcome::Repeated));
        }
        state.tell(tenant, catalog, id, now, |seq| note.event(id, seq));
        Ok(Some(RuntimeEventOutcome::Kept))
    }

    async fn reserve(
        &self,
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> Result<DedupOutcome, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let key = (tenant.clone(), subscription, key.to_owned());
        match state.subscriptions.seen.get(&key) {
            Some((known, at)) if *at > now.minus(window) => Ok(DedupOutcome::Known(*known)),
            Some(_) | None => {
                state.subscriptions.seen.insert(key, (execution, now));
                Ok(DedupOutcome::New)
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
