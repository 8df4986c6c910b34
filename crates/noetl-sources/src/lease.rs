//! Lease of a subscription: acquired, renewed, and released.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_work::MessageCounts;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::control_plane::{
    ControlPlaneClient, ControlPlaneError, RuntimeReport, SubscriptionView,
};
use crate::counters::MessageCounters;
use crate::source::Source;

const RENEWALS: u32 = 3;

/// Attempts per lease duration while renewals fail.
const RETRIES: u32 = 12;

/// Timeout for reading a source's backlog.
const BACKLOG_TIMEOUT: Duration = Duration::from_secs(3);

/// Holder and duration of a lease.
#[derive(Debug, Clone)]
pub(crate) struct LeaseTerms {
    pub(crate) holder: String,
    pub(crate) ttl: Duration,
    /// Message counters of the process.
    pub(crate) tally: Arc<MessageCounters>,
}

/// A lease that is renewed in the background until it is dropped.
pub(crate) struct SubscriptionLease {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    plane: Arc<dyn ControlPlaneClient>,
    view: SubscriptionView,
    terms: LeaseTerms,
    state: Mutex<LeaseState>,
    /// Triggers a renewal at once, to report a new source's backlog.
    stirred: Notify,
    is_awaited: AtomicBool,
    lost: CancellationToken,
}

struct LeaseState {
    /// Time until which the lease is certainly valid, by the monotonic clock.
    until: Instant,
    counts: MessageCounts,
    source: Option<Arc<dyn Source>>,
}

impl SubscriptionLease {
    /// Waits until the lease is acquired.
    pub(crate) async fn take(
        plane: &Arc<dyn ControlPlaneClient>,
        view: &SubscriptionView,
        terms: &LeaseTerms,
    ) -> Self {
        let mut is_told = false;
        loop {
            let asked = Instant::now();
            let answer = plane.hold(view, &terms.holder, terms.ttl, RuntimeReport::default()).await;
            let pause = match answer {
                Ok(hold) if hold.is_held => {
                    let until = asked + terms.ttl;
                    return Self::keep(plane, view, terms, until, hold.is_awaited);
                }
                Ok(_) => terms.ttl / RENEWALS,
                Err(error) => {
                    if !is_told {
                        warn!(
                            subscription = view.path, %error,
                            "failed to acquire subscription lease, retrying"
                        );
                        is_told = true;
                    }
                    terms.ttl / RETRIES
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn keep(
        plane: &Arc<dyn ControlPlaneClient>,
        view: &SubscriptionView,
        terms: &LeaseTerms,
        until: Instant,
        is_awaited: bool,
    ) -> Self {
        let shared = Arc::new(Shared {
            plane: plane.clone(),
            view: view.clone(),
            terms: terms.clone(),
            state: Mutex::new(LeaseState { until, counts: MessageCounts::default(), source: None }),
            stirred: Notify::new(),
            is_awaited: AtomicBool::new(is_awaited),
            lost: CancellationToken::new(),
        });
        let task = tokio::spawn(shared.clone().renew());
        Self { shared, task }
    }

    /// Returns `true` if the lease is certainly valid.
    pub(crate) fn is_held(&self) -> bool {
        !self.shared.lost.is_cancelled() && Instant::now() < self.shared.lock().until
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        self.shared.lost.cancelled().await;
    }

    /// Returns `true` if another runtime waits for the lease.
    pub(crate) fn is_awaited(&self) -> bool {
        self.shared.is_awaited.load(Ordering::Relaxed)
    }

    /// Sets the source whose backlog is reported with each renewal.
    pub(crate) fn look_at(&self, source: Option<Arc<dyn Source>>) {
        let is_there = source.is_some();
        self.shared.lock().source = source;
        if is_there {
            self.shared.stirred.notify_one();
        }
    }

    pub(crate) fn count(&self, add: impl Fn(&mut MessageCounts)) {
        self.shared.terms.tally.add(&add);
        add(&mut self.shared.lock().counts);
    }

    /// Releases the lease, so that the next holder need not wait for it to expire.
    pub(crate) async fn release(&self) {
        self.task.abort();
        let shared = &self.shared;
        let counts = std::mem::take(&mut shared.lock().counts);
        if counts != MessageCounts::default() && !shared.lost.is_cancelled() {
            let reading = RuntimeReport { backlog: None, counts };
            let (holder, ttl) = (&shared.terms.holder, shared.terms.ttl);
            let _ = shared.plane.hold(&shared.view, holder, ttl, reading).await;
        }
        // If the request fails, the lease expires.
        let _ = shared.plane.let_go(&shared.view, &shared.terms.holder).await;
    }
}

impl Drop for SubscriptionLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    async fn renew(self: Arc<Self>) {
        let usual = self.terms.ttl / RENEWALS;
        let mut pause = usual;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stirred.notified() => {}
            }
            let backlog = self.backlog().await;
            let counts = std::mem::take(&mut self.lock().counts);
            let asked = Instant::now();
            let (holder, ttl) = (&self.terms.holder, self.terms.ttl);
            let reading = RuntimeReport { backlog, counts };
            pause = match self.plane.hold(&self.view, holder, ttl, reading).await {
                Ok(hold) if hold.is_held => {
                    self.is_awaited.store(hold.is_awaited, Ordering::Relaxed);
                    self.lock().until = asked + ttl;
                    usual
                }
                Ok(_) => break,
                Err(ControlPlaneError::Refused(reason)) => {
                    warn!(subscription = self.view.path, reason, "lease rejected");
                    break;
                }
                Err(ControlPlaneError::Away(reason)) => {
                    let is_over = {
                        let mut state = self.lock();
                        add(&mut state.counts, counts);
                        Instant::now() >= state.until
                    };
                    if is_over {
                        warn!(subscription = self.view.path, reason, "lease expired");
                        break;
                    }
                    ttl / RETRIES
                }
            };
        }
        self.lost.cancel();
    }

    async fn backlog(&self) -> Option<u64> {
        let source = self.lock().source.clone()?;
        let asked = tokio::time::timeout(BACKLOG_TIMEOUT, source.backlog()).await;
        asked.ok()?.ok()?
    }

    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        // No critical section can panic halfway, so a poisoned lock still guards consistent data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(to: &mut MessageCounts, more: MessageCounts) {
    to.received += more.received;
    to.dispatched += more.dispatched;
    to.duplicate += more.duplicate;
    to.failed += more.failed;
    to.dead_lettered += more.dead_lettered;
}
