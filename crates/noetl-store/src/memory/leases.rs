//! [`LeaseStore`] and [`CursorStore`] of the in-memory store.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Timestamp;

use super::MemoryStore;
use crate::leases::number_to_take;
use crate::{CursorStore, CursorUpdate, Lease, LeaseStore, StoreError};

/// All leases, live or expired, and all cursors.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    leases: BTreeMap<String, Lease>,
    cursors: BTreeMap<String, i64>,
}

impl LeaseTable {
    fn acquire(
        &mut self,
        name: &str,
        holder: &str,
        until: Timestamp,
        now: Timestamp,
    ) -> Option<Lease> {
        let known = self.leases.get(name);
        let epoch = match known {
            Some(known) if known.is_live(now) && known.holder != holder => return None,
            Some(known) if known.is_live(now) => known.epoch,
            Some(known) => known.epoch + 1,
            None => 1,
        };
        let lease = Lease { name: name.to_owned(), holder: holder.to_owned(), epoch, until };
        self.leases.insert(name.to_owned(), lease.clone());
        Some(lease)
    }

    /// Returns the row of a lease if it is live and in the same epoch.
    fn held(&mut self, lease: &Lease, now: Timestamp) -> Option<&mut Lease> {
        let known = self.leases.get_mut(&lease.name)?;
        (known.is_live(now) && known.is_same(lease)).then_some(known)
    }

    fn live(&self, prefix: &str, now: Timestamp) -> Vec<Lease> {
        let named = self.leases.values().filter(|lease| lease.name.starts_with(prefix));
        named.filter(|lease| lease.is_live(now)).cloned().collect()
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        Ok(state.leases.acquire(name, holder, now.plus(ttl), now))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let held = state.leases.held(lease, now);
        Ok(held.map(|held| held.until = now.plus(ttl)).is_some())
    }

    async fn release(&self, lease: &Lease) -> Result<bool, StoreError> {
        let mut state = self.state();
        let held = state.leases.held(lease, self.clock.now());
        Ok(held.map(|held| held.until = Timestamp::default()).is_some())
    }

    async fn lease(&self, name: &str) -> Result<Option<Lease>, StoreError> {
        let state = self.state();
        let now = self.clock.now();
        Ok(state.leases.leases.get(name).filter(|lease| lease.is_live(now)).cloned())
    }

    async fn live(&self, prefix: &str) -> Result<Vec<Lease>, StoreError> {
        let state = self.state();
        Ok(state.leases.live(prefix, self.clock.now()))
    }

    async fn acquire_any(
        &self,
        prefix: &str,
        numbers: Range<u16>,
        holder: &str,
        ttl: Duration,
    ) -> Result<Option<(u16, Lease)>, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        let live = state.leases.live(prefix, now);
        let Some(number) = number_to_take(prefix, numbers, holder, &live) else {
            return Ok(None);
        };
        let name = format!("{prefix}{number}");
        let lease = state.leases.acquire(&name, holder, now.plus(ttl), now);
        Ok(lease.map(|lease| (number, lease)))
    }
}

#[async_trait]
impl CursorStore for MemoryStore {
    async fn cursor(&self, name: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.state().leases.cursors.get(name).copied())
    }

    async fn advance(
        &self,
        name: &str,
        position: i64,
        fence: Option<&Lease>,
    ) -> Result<CursorUpdate, StoreError> {
        let mut state = self.state();
        let now = self.clock.now();
        if fence.is_some_and(|fence| state.leases.held(fence, now).is_none()) {
            return Ok(CursorUpdate::Fenced);
        }
        let known = state.leases.cursors.get(name);
        if known.is_some_and(|&known| known >= position) {
            return Ok(CursorUpdate::Kept);
        }
        state.leases.cursors.insert(name.to_owned(), position);
        Ok(CursorUpdate::Moved)
    }
}
