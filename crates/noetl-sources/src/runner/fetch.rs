//! Fetches messages from a source and dispatches them within the configured limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use noetl_playbook::subscription::Subscription;
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::circuit::Circuit;
use super::deliver::MessageDelivery;
use super::memory::RecentMessages;
use super::outage::OutageLog;
use crate::control_plane::{ControlPlaneClient, RuntimeEvent, SubscriptionView};
use crate::lease::SubscriptionLease;
use crate::limits::Bucket;
use crate::source::{Delivery, Source, SourceError};
use crate::spool::Spool;

/// Time a fetch waits for the first message, and the maximum delay until a pause takes effect.
const FETCH_WAIT: Duration = Duration::from_millis(500);

/// Default and maximum number of messages per fetch.
const BATCH_DEFAULT: u64 = 100;
const BATCH_MAX: u64 = 1000;

/// Batches in flight if the document sets no limit, so that others proceed while one waits for the
/// disk.
const BATCHES: usize = 4;

/// Minimum interval between events about a rate limit.
const LIMITED_EVERY: Duration = Duration::from_secs(60);

pub(super) struct FetchLoop {
    pub(super) plane: Arc<dyn ControlPlaneClient>,
    pub(super) view: SubscriptionView,
    pub(super) subscription: Arc<Subscription>,
    pub(super) source: Arc<dyn Source>,
    pub(super) spool: Option<Arc<Spool>>,
    pub(super) lease: Arc<SubscriptionLease>,
    pub(super) memory: Arc<RecentMessages>,
    pub(super) end: CancellationToken,
}

type Fetching = JoinHandle<Result<Vec<Delivery>, SourceError>>;

impl FetchLoop {
    /// Fetches and dispatches until `end` is cancelled or the source fails. Messages in flight are
    /// acked or nacked before this returns.
    pub(super) async fn run(self) -> Result<(), SourceError> {
        let mut deliveries = JoinSet::new();
        let circuit = self.circuit();
        let trouble = Arc::new(OutageLog::dispatch(&self.plane, &self.view));
        let deliver = Arc::new(self.deliver(&trouble, circuit.clone()));
        let emptying = CancellationToken::new();
        let emptied = circuit.map(|circuit| {
            let replay = Arc::new(self.deliver(&trouble, None));
            tokio::spawn(circuit.empty(replay, emptying.clone()))
        });
        let ended = self.fetch_all(&deliver, &mut deliveries).await;
        while deliveries.join_next().await.is_some() {}
        emptying.cancel();
        if let Some(emptied) = emptied {
            // Entries that were not replayed stay in the spool.
            let _ = emptied.await;
        }
        ended
    }

    fn circuit(&self) -> Option<Arc<Circuit>> {
        let (spool, wanted) = (self.spool.clone()?, self.subscription.spool.clone()?);
        Some(Arc::new(Circuit::new(spool, wanted)))
    }

    /// Creates the dispatcher: for new messages with a circuit breaker, for replays without.
    fn deliver(&self, trouble: &Arc<OutageLog>, circuit: Option<Arc<Circuit>>) -> MessageDelivery {
        let limits = &self.subscription.limits;
        let replays = self.subscription.spool.as_ref();
        let replays = replays.and_then(|spool| spool.drain.max_replay_attempts);
        let replays = replays.filter(|_| self.spool.is_some() && circuit.is_none());
        MessageDelivery {
            plane: self.plane.clone(),
            view: self.view.clone(),
            subscription: self.subscription.clone(),
            ack_wait: self.source.ack_wait(),
            lease: self.lease.clone(),
            memory: self.memory.clone(),
            trouble: trouble.clone(),
            end: self.end.clone(),
            circuit,
            failures_max: replays.or(limits.max_failures),
        }
    }

    async fn fetch_all(
        &self,
        deliver: &Arc<MessageDelivery>,
        deliveries: &mut JoinSet<()>,
    ) -> Result<(), SourceError> {
        let in_flight = Arc::new(AtomicUsize::new(0));
        let mut gate = Gate::new(&self.subscription);
        let mut fetching: Option<(usize, Fetching)> = None;
        loop {
            let mut wait = None;
            if fetching.is_none() {
                if self.end.is_cancelled() {
                    return Ok(());
                }
                match gate.open(in_flight.load(Ordering::Acquire), Instant::now()) {
                    GateState::For(count) => {
                        let source = self.source.clone();
                        let fetch = async move { source.fetch(count, FETCH_WAIT).await };
                        fetching = Some((count, tokio::spawn(fetch)));
                    }
                    GateState::Full => self.limited(&mut gate, "max_in_flight"),
                    GateState::In(pause) => {
                        wait = Some(pause);
                        self.limited(&mut gate, "max_dispatch_per_sec");
                    }
                }
            }
            let is_fetching = fetching.is_some();
            let fetched = async {
                match &mut fetching {
                    Some((_, fetch)) => fetch.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                fetched = fetched => {
                    let asked = fetching.take().map_or(0, |(asked, _)| asked);
                    let failed = |_| SourceError::Away("the source panicked".to_owned());
                    let new_deliveries = fetched.map_err(failed)??;
                    gate.unused(asked.saturating_sub(new_deliveries.len()));
                    if !new_deliveries.is_empty() {
                        self.hand_on(new_deliveries, deliver, &in_flight, deliveries).await;
                    }
                }
                Some(_) = deliveries.join_next() => {}
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                () = self.end.cancelled(), if !is_fetching => {}
            }
        }
    }

    async fn hand_on(
        &self,
        mut new_deliveries: Vec<Delivery>,
        deliver: &Arc<MessageDelivery>,
        in_flight: &Arc<AtomicUsize>,
        deliveries: &mut JoinSet<()>,
    ) {
        // Nack without delay, so that the next holder of the lease receives them at once.
        if self.end.is_cancelled() || !self.lease.is_held() {
            for delivery in new_deliveries {
                let _ = delivery.handle.nack(Duration::ZERO).await;
            }
            return;
        }
        if let Some(circuit) = &deliver.circuit {
            circuit.number(&mut new_deliveries);
        }
        let count = new_deliveries.len();
        self.lease.count(|counts| counts.received += count as u64);
        in_flight.fetch_add(count, Ordering::AcqRel);
        let counted = InFlightGuard { count, in_flight: in_flight.clone() };
        let deliver = deliver.clone();
        deliveries.spawn(async move {
            let _counted = counted;
            deliver.batch(new_deliveries).await;
        });
    }

    /// Records in the event log that a limit throttles messages, at most once per
    /// [`LIMITED_EVERY`].
    fn limited(&self, gate: &mut Gate, reason: &'static str) {
        let limits = &self.subscription.limits;
        let is_set = match reason {
            "max_in_flight" => limits.max_in_flight.is_some(),
            _ => limits.max_dispatch_per_sec.is_some(),
        };
        if !is_set || !gate.is_to_be_recorded(Instant::now()) {
            return;
        }
        let payload = json!({
            "reason": reason,
            "max_in_flight": limits.max_in_flight,
            "max_dispatch_per_sec": limits.max_dispatch_per_sec,
            "action": "hold",
            "loss_safe": true,
        });
        let (event_type, status) = ("subscription.rate_limited", "RATE_LIMITED");
        let note = RuntimeEvent { log: self.view.id.log(), event_type, status, payload };
        let plane = self.plane.clone();
        // Best effort: nothing depends on this event.
        tokio::spawn(async move {
            let _ = plane.note(note).await;
        });
    }
}

/// Subtracts its count from the messages in flight when the batch ends, even by a panic.
struct InFlightGuard {
    count: usize,
    in_flight: Arc<AtomicUsize>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(self.count, Ordering::AcqRel);
    }
}

/// Decides how many messages may be fetched.
struct Gate {
    batch: usize,
    in_flight_max: usize,
    bucket: Option<Bucket>,
    recorded_at: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum GateState {
    For(usize),
    /// No fetch until a batch in flight ends.
    Full,
    /// No fetch for this long.
    In(Duration),
}

impl Gate {
    fn new(subscription: &Subscription) -> Self {
        let batch = subscription.runtime.batch.unwrap_or(BATCH_DEFAULT).clamp(1, BATCH_MAX);
        let batch = usize::try_from(batch).unwrap_or(1);
        let limits = &subscription.limits;
        let most = limits.max_in_flight.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let bucket = limits.max_dispatch_per_sec.map(|rate| Bucket::new(rate, Instant::now()));
        Self { batch, in_flight_max: most.unwrap_or(batch * BATCHES), bucket, recorded_at: None }
    }

    fn open(&mut self, in_flight: usize, now: Instant) -> GateState {
        let room = self.in_flight_max.saturating_sub(in_flight).min(self.batch);
        if room == 0 {
            return GateState::Full;
        }
        match &mut self.bucket {
            None => GateState::For(room),
            Some(bucket) => match bucket.take(room, now) {
                0 => GateState::In(bucket.next_in().max(Duration::from_millis(1))),
                count => GateState::For(count),
            },
        }
    }

    fn unused(&mut self, count: usize) {
        if let Some(bucket) = &mut self.bucket {
            bucket.put_back(count);
        }
    }

    fn is_to_be_recorded(&mut self, now: Instant) -> bool {
        let is_due = self.recorded_at.is_none_or(|recorded_at| now >= recorded_at + LIMITED_EVERY);
        if is_due {
            self.recorded_at = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_limits_messages_by_batch_in_flight_and_rate() {
        let start = Instant::now();
        let bucket = Some(Bucket::new(5.0, start));
        let mut gate = Gate { batch: 4, in_flight_max: 6, bucket, recorded_at: None };
        assert_eq!(gate.open(0, start), GateState::For(4));
        assert_eq!(gate.open(6, start), GateState::Full);
        assert_eq!(gate.open(4, start), GateState::For(1), "five in the first second");
        assert_eq!(gate.open(4, start), GateState::In(Duration::from_millis(200)));
        gate.unused(1);
        assert_eq!(gate.open(4, start), GateState::For(1));
        let mut free = Gate { batch: 4, in_flight_max: 6, bucket: None, recorded_at: None };
        assert_eq!(free.open(0, start), GateState::For(4));
        assert_eq!(free.open(4, start), GateState::For(2));
        assert_eq!(free.open(7, start), GateState::Full);
    }
}
