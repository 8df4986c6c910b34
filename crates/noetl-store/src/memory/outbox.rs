//! [`OutboxStore`] of the in-memory store.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, EventId, ExecutionId, Tenant, Timestamp};

use super::MemoryStore;
use crate::outbox::{CODEC, Envelope, cut, subject};
use crate::{OutboxOptions, OutboxRow, OutboxStore, StoreError};

/// All rows that were not purged.
#[derive(Debug, Default)]
pub(super) struct OutboxTable {
    pub(super) options: OutboxOptions,
    rows: BTreeMap<i64, OutboxEntry>,
    /// Largest ID assigned so far; IDs are not reused.
    last: i64,
    events: HashSet<(ExecutionId, EventId)>,
}

#[derive(Debug)]
struct OutboxEntry {
    row: OutboxRow,
    status: OutboxStatus,
}

#[derive(Debug)]
enum OutboxStatus {
    /// Pending, or failed, until this time.
    Waits(Timestamp),
    /// Claimed at this time.
    InFlight(Timestamp),
    /// Published at this time.
    Published(Timestamp),
}

impl OutboxEntry {
    fn is_claimable(&self, now: Timestamp, lease: Duration) -> bool {
        match self.status {
            OutboxStatus::Waits(until) => until <= now,
            OutboxStatus::InFlight(claimed) => claimed.plus(lease) <= now,
            OutboxStatus::Published(_) => false,
        }
    }
}

impl OutboxTable {
    /// Adds the events of one append. An event that is in the log twice is published once.
    pub(super) fn add(
        &mut self,
        (tenant, catalog): (&Tenant, CatalogId),
        rows: &[EventRow],
        previous: Option<EventId>,
        now: Timestamp,
    ) {
        if !self.options.is_on {
            return;
        }
        let mut previous = previous;
        for event in rows {
            let envelope = Envelope { tenant, catalog, previous, row: event };
            previous = Some(event.event_id);
            if !self.events.insert((event.execution_id, event.event_id)) {
                continue;
            }
            let payload = envelope.payload();
            self.last += 1;
            let id = self.last;
            let row = OutboxRow {
                id,
                tenant: tenant.clone(),
                event: event.event_id,
                execution: Some(event.execution_id),
                subject: Some(subject(event.event_type.as_deref())),
                payload: payload.expect("a row's JSON is what this process wrote"),
                codec: CODEC.into(),
                attempts: 0,
                error: None,
            };
            self.rows.insert(id, OutboxEntry { row, status: OutboxStatus::Waits(now) });
        }
    }

    /// Removes rows that were published at or before `until` and returns their number. A dry run
    /// only counts them.
    pub(super) fn purge(&mut self, until: Timestamp, dry_run: bool) -> usize {
        let mut goes = 0;
        let events = &mut self.events;
        self.rows.retain(|_, known| match known.status {
            OutboxStatus::Published(at) if at <= until => {
                goes += 1;
                if !dry_run && let Some(execution) = known.row.execution {
                    events.remove(&(execution, known.row.event));
                }
                dry_run
            }
            OutboxStatus::Published(_) | OutboxStatus::Waits(_) | OutboxStatus::InFlight(_) => true,
        });
        goes
    }
}

#[async_trait]
impl OutboxStore for MemoryStore {
    async fn claim_within(&self, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let lease = state.outbox.options.lease;
        let rows = state.outbox.rows.values_mut();
        let claimable = rows.filter(|known| known.is_claimable(now, lease)).take(limit);
        let mut claimed: usize = 0;
        let claimable = claimable.take_while(|known| {
            let is_first = claimed == 0;
            claimed = claimed.saturating_add(known.row.payload.len());
            is_first || claimed <= bytes
        });
        let claim = |known: &mut OutboxEntry| {
            known.row.attempts += 1;
            known.status = OutboxStatus::InFlight(now);
            known.row.clone()
        };
        Ok(claimable.map(claim).collect())
    }

    async fn mark_published(&self, ids: &[i64]) -> Result<usize, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let mut marked = 0;
        for id in ids {
            let known = state.outbox.rows.get_mut(id);
            if let Some(known) =
                known.filter(|known| !matches!(known.status, OutboxStatus::Published(_)))
            {
                known.status = OutboxStatus::Published(now);
                known.row.error = None;
                marked += 1;
            }
        }
        Ok(marked)
    }

    async fn mark_failed(&self, id: i64, error: &str, delay: Duration) -> Result<bool, StoreError> {
        let mut state = self.state();
        let until = self.clock.now().plus(delay);
        match state.outbox.rows.get_mut(&id) {
            Some(known) if !matches!(known.status, OutboxStatus::Published(_)) => {
                known.status = OutboxStatus::Waits(until);
                known.row.error = Some(cut(error).to_owned());
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    async fn pending(&self) -> Result<u64, StoreError> {
        let state = self.state();
        let (now, lease) = (self.clock.now(), state.outbox.options.lease);
        let rows = state.outbox.rows.values();
        let count = rows.filter(|known| known.is_claimable(now, lease)).count();
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    async fn purge_published(&self, older_than: Duration) -> Result<usize, StoreError> {
        let until = self.clock.now().minus(older_than);
        Ok(self.state().outbox.purge(until, false))
    }
}
