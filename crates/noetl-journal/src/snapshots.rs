//! Snapshots of execution state, so an execution that is not cached need not be folded from its
//! first event. They are taken with a decision and stored once its events are committed. They only
//! save work: the event log is authoritative.

use std::sync::Arc;

use noetl_engine::{Execution, snapshot_is_due};
use noetl_model::{ExecutionId, Seq, Tenant, Value};
use noetl_store::{JournalStore, Snapshot};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::state_cache::CachedState;

/// Aggregate type of the snapshots.
const TYPE: &str = "engine_state";

/// Assumed size of an event in bytes. Accurate enough to tell when reading events costs more than a
/// snapshot.
const EVENT_BYTES: usize = 256;

/// Maximum number of snapshots waiting to be stored. Further ones are dropped and taken later.
const QUEUE_MAX: usize = 64;

/// A snapshot that was taken and is not stored yet.
pub(crate) struct PendingSnapshot {
    tenant: Tenant,
    version: Seq,
    body: Vec<u8>,
}

/// Returns the approximate log size of this many events, in bytes.
pub(crate) fn log_bytes(events: usize) -> usize {
    events.saturating_mul(EVENT_BYTES)
}

/// Takes a snapshot if one is due after `events` more.
pub(crate) fn take(cached: &mut CachedState, events: usize) -> Option<PendingSnapshot> {
    cached.log_bytes += log_bytes(events);
    if !snapshot_is_due(cached.log_bytes, cached.snapshot_bytes) {
        return None;
    }
    let body = cached.state.to_snapshot();
    (cached.log_bytes, cached.snapshot_bytes) = (0, body.len());
    Some(PendingSnapshot { tenant: cached.tenant.clone(), version: cached.state.version(), body })
}

/// Returns the state of the last snapshot and its size in bytes, or the absent state if there is no
/// usable snapshot.
pub(crate) async fn restore(
    store: &dyn JournalStore,
    tenant: &Tenant,
    execution: ExecutionId,
) -> (Execution, usize) {
    let absent = || (Execution::new(execution), 0);
    let found = match store.snapshot(tenant, TYPE, &execution.to_string()).await {
        Ok(Some(found)) => found,
        Ok(None) => return absent(),
        Err(error) => {
            warn!(execution.id = %execution, %error, "failed to read snapshot");
            return absent();
        }
    };
    match Execution::from_snapshot(execution, found.body.as_bytes()) {
        Ok(state) => (state, found.body.len()),
        Err(error) => {
            warn!(execution.id = %execution, %error, "ignoring invalid snapshot");
            absent()
        }
    }
}

/// Queue of snapshots to be stored independently of the journal.
#[derive(Clone)]
pub(crate) struct SnapshotQueue {
    queue: mpsc::Sender<(ExecutionId, PendingSnapshot)>,
}

impl SnapshotQueue {
    /// Returns the queue, and the task that stores snapshots until the control plane closes.
    pub(crate) fn new(
        store: Arc<dyn JournalStore>,
        closing: CancellationToken,
    ) -> (Self, impl Future<Output = ()>) {
        let (queue, mut taken) = mpsc::channel(QUEUE_MAX);
        let keep = async move {
            loop {
                let (execution, taken): (ExecutionId, PendingSnapshot) = tokio::select! {
                    next = taken.recv() => match next {
                        Some(next) => next,
                        None => return,
                    },
                    () = closing.cancelled() => return,
                };
                save(&*store, execution, taken).await;
            }
        };
        (Self { queue }, keep)
    }

    /// Queues a snapshot. Drops it if the queue is full: a later one serves as well.
    pub(crate) fn enqueue(&self, execution: ExecutionId, taken: PendingSnapshot) {
        let _ = self.queue.try_send((execution, taken));
    }
}

async fn save(store: &dyn JournalStore, execution: ExecutionId, taken: PendingSnapshot) {
    let Ok(body) = String::from_utf8(taken.body) else { return };
    let version = i64::try_from(taken.version.0).unwrap_or(i64::MAX);
    let snapshot = Snapshot::new(version, body, Value::Null);
    let saved = store.save(&taken.tenant, TYPE, &execution.to_string(), snapshot).await;
    if let Err(error) = saved {
        warn!(execution.id = %execution, %error, "failed to store snapshot");
    }
}
