//! Limits the leases of commands whose reports may be lost, because their workers couldn't reach a
//! server.
//!
//! A published worker tries to send a report four times and then drops it. Its heartbeats continue
//! and don't name commands, so they would renew the lease of a command that isn't running until its
//! limit is over: an hour if its tool has no timeout. When the server restarted, or there was a gap
//! in the worker's heartbeats, the leases of that time get an earlier limit. A command that is
//! still running then may run twice if its tool allows it, so a lease is never shortened without
//! such a cause.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_identity::LEASES;
use noetl_model::{CommandId, Timestamp};
use noetl_store::{HeldBy, HeldLimit, JournalStore, Lease, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::scope::TenantScope;

/// Maximum number of limits whose causes are remembered.
const REMEMBERED_MAX: usize = 1000;

/// Delay before retrying a failed store operation.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Limits the leases of workers that couldn't reach a server. Cheap to clone.
#[derive(Clone)]
pub struct LostReports {
    store: Arc<dyn JournalStore>,
    /// Maximum time between the cause and the expiration of a lease.
    within: Duration,
    /// Cause of each limit. A limit is a store time in microseconds, so it identifies its cause.
    /// Other processes know only the limit, not the cause.
    causes: Arc<Mutex<BTreeMap<Timestamp, String>>>,
}

impl LostReports {
    pub(crate) fn new(store: Arc<dyn JournalStore>, within: Duration) -> Self {
        Self { store, within, causes: Arc::default() }
    }

    /// Returns why a lease ends at this limit, if this process set the limit.
    pub fn cause(&self, at_most: Timestamp) -> Option<String> {
        self.lock().get(&at_most).cloned()
    }

    /// Limits the leases of a worker after a gap in its heartbeats.
    pub async fn after_gap(
        &self,
        scope: &TenantScope,
        worker: &str,
        gap: Duration,
    ) -> Result<(), StoreError> {
        let by = HeldBy::Worker(worker);
        let limits = self.store.limit_held(scope.as_ref(), by, self.within).await?;
        let cause = format!("no heartbeat of worker '{worker}' arrived for {} s", gap.as_secs());
        self.remember(limits, &cause);
        Ok(())
    }

    /// Limits the leases of commands that workers held when this process started, unless another
    /// server ran all the time.
    ///
    /// `others` are the leases of other processes at the start, which was `at`. A killed process
    /// leaves its lease behind, so a lease counts only if it is renewed.
    pub(crate) async fn after_restart(
        self,
        at: Timestamp,
        held: Vec<CommandId>,
        others: Vec<Lease>,
        lease: Duration,
        closing: CancellationToken,
    ) {
        if held.is_empty() {
            return;
        }
        // A process renews its lease after a third of its duration.
        let waits = if others.is_empty() { Duration::ZERO } else { lease / 2 };
        let mut pause = waits;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = closing.cancelled() => return,
            }
            match self.limit_unless_renewed(&held, &others, at, waits).await {
                Ok(()) => return,
                Err(error) => {
                    warn!(%error, "failed to limit leases from before the restart, retrying");
                }
            }
            pause = RETRY_AFTER;
        }
    }

    async fn limit_unless_renewed(
        &self,
        held: &[CommandId],
        others: &[Lease],
        at: Timestamp,
        waited: Duration,
    ) -> Result<(), StoreError> {
        if !others.is_empty() {
            let now = self.store.live(LEASES).await?;
            let is_renewed = |before: &Lease| {
                now.iter().any(|lease| {
                    (&lease.name, &lease.holder) == (&before.name, &before.holder)
                        && lease.until > before.until
                })
            };
            if others.iter().any(is_renewed) {
                return Ok(());
            }
        }
        let within = self.within.saturating_sub(waited);
        let limits = self.store.limit_held(None, HeldBy::Commands(held), within).await?;
        self.remember(limits, &format!("the server restarted at {at}"));
        Ok(())
    }

    fn remember(&self, limits: Vec<HeldLimit>, cause: &str) {
        for HeldLimit { at_most, commands } in limits {
            info!(commands, %at_most, cause, "leases limited because reports may be lost");
            let mut causes = self.lock();
            if causes.len() >= REMEMBERED_MAX {
                causes.pop_first();
            }
            causes.insert(at_most, cause.to_owned());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Timestamp, String>> {
        // Each critical section is one call that cannot panic midway.
        self.causes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
