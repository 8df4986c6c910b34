//! Timers, the outbox, and snapshots, which follow from the event log of a shard.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use noetl_model::{ExecutionId, Tenant, TimerId, Timestamp};

use super::{NamedStore, Sharded};
use crate::snapshots::execution_of;
use crate::{OutboxRow, OutboxStore, Snapshot, SnapshotStore, StoreError, TimerRow, TimerStore};

/// Number of low bits in an outbox ID that are the row's ID in its shard; the shard number is above
/// them. IDs of one shard thus retain their order, and with up to 32 shards they are exact in any
/// JSON parser.
const ROW_BITS: u32 = 48;

/// Returns the global ID of a shard's row.
fn outward(number: usize, id: i64) -> Result<i64, StoreError> {
    let number = i64::try_from(number).expect("there are at most SHARDS_MAX");
    match id >> ROW_BITS {
        0 => Ok(number << ROW_BITS | id),
        _ => {
            let large = format!("row {id} of the outbox has too large an id for a shard");
            Err(StoreError::backend("number a row of the outbox", large))
        }
    }
}

/// Returns the shard number and the ID in that shard for a global ID.
fn inward(id: i64) -> Option<(usize, i64)> {
    let number = usize::try_from(id >> ROW_BITS).ok()?;
    Some((number, id & ((1 << ROW_BITS) - 1)))
}

#[async_trait]
impl TimerStore for Sharded {
    /// Claims timers from all shards. Each shard contributes its share, in its own order; there is
    /// no order between shards.
    async fn claim_due(
        &self,
        limit: usize,
        lease_for: Duration,
    ) -> Result<Vec<TimerRow>, StoreError> {
        let taken = self.fan_out(limit, Vec::len, |store, share| store.claim_due(share, lease_for));
        let taken = taken.await.work()?;
        Ok(taken.into_iter().flat_map(|(_, rows)| rows).collect())
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let next = self.all(|store| store.next_due()).await?;
        Ok(next.into_iter().flatten().min())
    }

    async fn delete_timers(&self, ids: &[TimerId]) -> Result<usize, StoreError> {
        Ok(self.all(|store| store.delete_timers(ids)).await?.into_iter().sum())
    }

    async fn reschedule(&self, id: TimerId, until: Timestamp) -> Result<bool, StoreError> {
        Ok(self.all(|store| store.reschedule(id, until)).await?.contains(&true))
    }

    async fn with_pending_timer(
        &self,
        kind: &str,
        executions: &[ExecutionId],
    ) -> Result<Vec<ExecutionId>, StoreError> {
        let mut senders =
            self.all(|store| store.with_pending_timer(kind, executions)).await?.concat();
        senders.sort_unstable();
        Ok(senders)
    }

    async fn timers_of(&self, execution: ExecutionId) -> Result<Vec<TimerRow>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.timers_of(execution).await)
    }
}

#[async_trait]
impl OutboxStore for Sharded {
    /// Claims rows from all shards. The byte limit is divided as well, so a claim may exceed it by
    /// one row of each shard whose first row is larger than its share.
    async fn claim_within(&self, limit: usize, bytes: usize) -> Result<Vec<OutboxRow>, StoreError> {
        let senders = self.senders();
        let taken = AtomicUsize::new(0);
        let (taken, each) = (&taken, senders.len());
        let claimed = self.fan_out_over(&senders, limit, Vec::len, |store, share| async move {
            let so_far = taken.load(Ordering::Relaxed);
            let left = bytes.saturating_sub(so_far) / each;
            if left == 0 && so_far > 0 {
                return Ok(Vec::new());
            }
            let rows = store.claim_within(share, left).await?;
            taken.fetch_add(rows.iter().map(|row| row.payload.len()).sum(), Ordering::Relaxed);
            Ok(rows)
        });
        let claimed = claimed.await.work()?;
        let mut rows = Vec::new();
        for (number, claimed) in claimed {
            for row in claimed {
                rows.push(OutboxRow { id: outward(number, row.id)?, ..row });
            }
        }
        rows.sort_by_key(|row| row.id);
        Ok(rows)
    }

    async fn mark_published(&self, ids: &[i64]) -> Result<usize, StoreError> {
        let senders = self.senders();
        let mut by_shard = vec![Vec::new(); senders.len()];
        for (number, id) in ids.iter().copied().filter_map(inward) {
            if let Some(ids) = by_shard.get_mut(number) {
                ids.push(id);
            }
        }
        let named = senders.iter().zip(&by_shard).filter(|(_, ids)| !ids.is_empty());
        let marks = named
            .map(|(shard, ids)| async move { shard.named(shard.store.mark_published(ids).await) });
        join_all(marks).await.into_iter().sum()
    }

    async fn mark_failed(&self, id: i64, error: &str, delay: Duration) -> Result<bool, StoreError> {
        let Some((number, id)) = inward(id) else { return Ok(false) };
        let senders = self.senders();
        let Some(shard) = senders.get(number) else { return Ok(false) };
        shard.named(shard.store.mark_failed(id, error, delay).await)
    }

    async fn pending(&self) -> Result<u64, StoreError> {
        let asked = self.senders().into_iter();
        let asked = asked.map(|part| async move { part.named(part.store.pending().await) });
        join_all(asked).await.into_iter().sum()
    }

    async fn purge_published(&self, older_than: Duration) -> Result<usize, StoreError> {
        let asked = self
            .senders()
            .into_iter()
            .map(|part| async move { part.named(part.store.purge_published(older_than).await) });
        join_all(asked).await.into_iter().sum()
    }
}

impl Sharded {
    /// Returns the stores that have an outbox, by the number in their rows' IDs: the shards, then
    /// the cluster store with the logs of subscriptions, unless it is a shard.
    fn senders(&self) -> Vec<&NamedStore> {
        let apart = self.has_cluster_apart().then_some(&self.cluster);
        self.shards.iter().chain(apart).collect()
    }

    /// Returns the store with the snapshots of this aggregate: that of the execution its ID names,
    /// whatever its type, or else the cluster store.
    fn of_aggregate(&self, id: &str) -> &NamedStore {
        execution_of(id).map_or(&self.cluster, |id| self.of_execution(id))
    }
}

#[async_trait]
impl SnapshotStore for Sharded {
    async fn snapshot(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<Option<Snapshot>, StoreError> {
        let place = self.of_aggregate(aggregate_id);
        place.named(place.store.snapshot(tenant, aggregate_type, aggregate_id).await)
    }

    async fn save(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
        snapshot: Snapshot,
    ) -> Result<bool, StoreError> {
        let place = self.of_aggregate(aggregate_id);
        place.named(place.store.save(tenant, aggregate_type, aggregate_id, snapshot).await)
    }

    async fn forget(
        &self,
        tenant: &Tenant,
        aggregate_type: &str,
        aggregate_id: &str,
    ) -> Result<bool, StoreError> {
        let place = self.of_aggregate(aggregate_id);
        place.named(place.store.forget(tenant, aggregate_type, aggregate_id).await)
    }
}
