//! Circuit breaker that spools messages while executions cannot be started, and drains the spool.
//!
//! After several consecutive failures the circuit opens: new messages are spooled, and the oldest
//! entries are retried at intervals. Once they succeed, the spool is drained. Until it is empty,
//! new messages queue behind the spooled ones, or bypass them if the document says so.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_playbook::subscription::{OnRecovery, Spool as Settings};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::deliver::MessageDelivery;
use crate::control_plane::RuntimeEvent;
use crate::limits::Bucket;
use crate::source::{Delivery, SourceError};
use crate::spool::{Spool, SpoolEntry, SpoolOutcome, SpooledMessage, key_of_order};

/// Default number of consecutive failures that open the circuit.
const TRIP_AFTER: u64 = 3;

/// Default delay before the first probe and between probes.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// Number of entries read at a time.
const PAGE: usize = 100;

/// Delay before rejected entries are retried.
const REFUSED_PAUSE: Duration = Duration::from_millis(250);

/// Minimum interval between alerts about a full spool.
const ALERT_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CircuitState {
    /// Messages start executions directly.
    Closed,
    Open,
    /// Spooled messages are being replayed.
    Emptying,
}

pub(super) struct Circuit {
    spool: Arc<Spool>,
    settings: Settings,
    now: Mutex<Now>,
    opened: Notify,
}

struct Now {
    state: CircuitState,
    failures: u64,
    alerted: Option<Instant>,
}

impl Circuit {
    /// Creates the circuit breaker: draining if the spool has entries, else closed.
    pub(super) fn new(spool: Arc<Spool>, settings: Settings) -> Self {
        let state =
            if spool.holds().entries > 0 { CircuitState::Emptying } else { CircuitState::Closed };
        let now = Mutex::new(Now { state, failures: 0, alerted: None });
        Self { spool, settings, now, opened: Notify::new() }
    }

    /// Returns `true` if new messages must be spooled.
    pub(super) fn takes_new(&self) -> bool {
        match self.lock().state {
            CircuitState::Closed => false,
            CircuitState::Open => true,
            CircuitState::Emptying => {
                self.settings.drain.on_recovery != Some(OnRecovery::Interleave)
            }
        }
    }

    /// Counts a failure to start executions. Returns `true` if the circuit is now open.
    pub(super) fn failed(&self) -> bool {
        let mut now = self.lock();
        now.failures += 1;
        let is_open = now.failures >= self.settings.circuit.trip_after.unwrap_or(TRIP_AFTER);
        if is_open && now.state != CircuitState::Open {
            now.state = CircuitState::Open;
            self.opened.notify_one();
        }
        is_open
    }

    /// Resets the failure count after a success.
    pub(super) fn got_through(&self) {
        self.lock().failures = 0;
    }

    /// Assigns arrival numbers to messages.
    pub(super) fn number(&self, deliveries: &mut [Delivery]) {
        for (arrival, delivery) in (self.spool.arrivals(deliveries.len())..).zip(deliveries) {
            delivery.arrival = arrival;
        }
    }

    /// Spools a message in arrival order.
    pub(super) async fn keep(&self, delivery: &Delivery) -> Result<SpoolOutcome, SourceError> {
        let outcome = self.spool.append(&delivery.message, delivery.arrival).await?;
        if outcome == SpoolOutcome::Yes {
            let mut now = self.lock();
            // The spool may have become empty since the caller decided to spool this message.
            if now.state == CircuitState::Closed {
                now.state = CircuitState::Emptying;
                self.opened.notify_one();
            }
        }
        Ok(outcome)
    }

    /// Drains the spool whenever it has entries and executions can be started, until `end` is
    /// cancelled.
    pub(super) async fn empty(
        self: Arc<Self>,
        replay: Arc<MessageDelivery>,
        end: CancellationToken,
    ) {
        let emptying = async {
            loop {
                if self.lock().state == CircuitState::Closed {
                    self.opened.notified().await;
                }
                self.empty_once(&replay).await;
            }
        };
        tokio::select! {
            () = end.cancelled() => {}
            () = emptying => {}
        }
    }

    async fn empty_once(&self, replay: &MessageDelivery) {
        let probe = &self.settings.circuit;
        if self.lock().state == CircuitState::Open {
            self.alert(replay).await;
            tokio::time::sleep(millis(probe.probe_after_ms)).await;
        }
        let interval = millis(probe.probe_interval_ms.or(probe.probe_after_ms));
        let begun = Instant::now();
        let mut rate = self.settings.drain.rate_per_sec.map(|rate| Bucket::new(rate, begun));
        let (mut replayed, mut is_recorded) = (0_u64, false);
        loop {
            let listed = match self.spool.list().await {
                Ok(listed) => listed,
                Err(error) => {
                    warn!(
                        subscription = replay.view.path, %error,
                        "listing the spool failed, retrying"
                    );
                    tokio::time::sleep(interval).await;
                    continue;
                }
            };
            if listed.is_empty() {
                break;
            }
            let entries = listed.len();
            match self.replay(replay, listed, &mut rate, &mut replayed).await {
                Ok(()) => {
                    self.lock().state = CircuitState::Emptying;
                    if !is_recorded {
                        is_recorded = true;
                        let payload =
                            json!({"entries": entries, "bytes": self.spool.holds().bytes});
                        self.record(replay, "subscription.spool.draining", "DRAINING", payload)
                            .await;
                    }
                }
                Err(reason) => {
                    replay.trouble.begin(&reason).await;
                    self.lock().state = CircuitState::Open;
                    self.alert(replay).await;
                    tokio::time::sleep(interval).await;
                }
            }
        }
        {
            let mut now = self.lock();
            now.failures = 0;
            // A message may have been spooled meanwhile.
            now.state = match self.spool.holds().entries {
                0 => CircuitState::Closed,
                _ => CircuitState::Emptying,
            };
        }
        replay.trouble.end("replayed").await;
        if replayed > 0 {
            info!(subscription = replay.view.path, replayed, "spool drained");
            let payload = json!({"replayed": replayed, "seconds": begun.elapsed().as_secs()});
            self.record(replay, "subscription.spool.recovered", "RECOVERED", payload).await;
        }
    }

    /// Replays entries in order. Returns the reason if executions cannot be started.
    async fn replay(
        &self,
        replay: &MessageDelivery,
        listed: Vec<SpoolEntry>,
        rate: &mut Option<Bucket>,
        replayed: &mut u64,
    ) -> Result<(), String> {
        let mut listed = VecDeque::from(listed);
        while !listed.is_empty() {
            let most = PAGE.min(listed.len());
            let mut page = VecDeque::with_capacity(most);
            for listed in listed.drain(..most) {
                match self.spool.read(listed).await {
                    Ok(Some(SpooledMessage { delivery, fault: Some(fault) })) => {
                        let before = self.spool.holds().entries;
                        replay.bury(&delivery, &fault, 1).await;
                        if self.spool.holds().entries >= before {
                            return Err("failed to dead-letter a stored message".to_owned());
                        }
                    }
                    Ok(Some(entry)) => page.push_back(entry),
                    Ok(None) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            while !page.is_empty() {
                let mut batch = self.next_batch(&mut page);
                let allowed = allowed(rate, batch.len()).await;
                for late in batch.split_off(allowed).into_iter().rev() {
                    page.push_front(late);
                }
                let count = batch.len() as u64;
                let before = self.spool.holds().entries;
                let batch = batch.into_iter().map(|entry| entry.delivery).collect();
                let left = replay.round(batch).await;
                if !left.open.is_empty() {
                    return Err(left.reason);
                }
                let gone = before.saturating_sub(self.spool.holds().entries).min(count);
                *replayed += gone;
                if gone < count {
                    // Rejected entries are retried before the entries behind them.
                    tokio::time::sleep(REFUSED_PAUSE).await;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Removes the entries that may start concurrently: the first of each ordering key.
    fn next_batch(&self, page: &mut VecDeque<SpooledMessage>) -> Vec<SpooledMessage> {
        let (mut batch, mut later) = (Vec::new(), VecDeque::new());
        let mut seen = HashSet::new();
        while let Some(entry) = page.pop_front() {
            let key = key_of_order(&self.settings, &entry.delivery.message);
            match seen.insert(key) {
                true => batch.push(entry),
                false => later.push_back(entry),
            }
        }
        *page = later;
        batch
    }

    /// Reports a spool over its size limit, at most once per [`ALERT_EVERY`].
    async fn alert(&self, replay: &MessageDelivery) {
        if !self.spool.is_full() {
            return;
        }
        let is_due = {
            let mut now = self.lock();
            let is_due = now.alerted.is_none_or(|last| last.elapsed() >= ALERT_EVERY);
            if is_due {
                now.alerted = Some(Instant::now());
            }
            is_due
        };
        if is_due {
            let usage = self.spool.holds();
            warn!(subscription = replay.view.path, held.bytes = usage.bytes, "spool full");
            let payload = json!({"reason": "full", "entries": usage.entries, "bytes": usage.bytes});
            self.record(replay, "subscription.spool.alert", "FULL", payload).await;
        }
    }

    /// Appends an event to the subscription's event log. Only logs a failure.
    async fn record(
        &self,
        replay: &MessageDelivery,
        event_type: &'static str,
        status: &'static str,
        payload: Value,
    ) {
        let note = RuntimeEvent { log: replay.view.id.log(), event_type, status, payload };
        if let Err(error) = replay.plane.note(note).await {
            warn!(subscription = replay.view.path, %error, "failed to record {event_type}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(ms: Option<u64>) -> Duration {
    ms.map_or(PROBE_AFTER, Duration::from_millis)
}

/// Waits until the rate limit allows at least one start. Returns the number allowed, up to
/// `wanted`.
async fn allowed(rate: &mut Option<Bucket>, wanted: usize) -> usize {
    let Some(bucket) = rate else { return wanted };
    loop {
        match bucket.take(wanted, Instant::now()) {
            0 => tokio::time::sleep(bucket.next_in().max(Duration::from_millis(1))).await,
            count => return count,
        }
    }
}
