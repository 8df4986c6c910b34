//! Dispatches a batch of fetched messages.
//!
//! Each message is acked once its execution is durable. While executions cannot be started,
//! messages stay in memory, are retried, and have their ack deadlines extended. A message that is
//! rejected for its own content is redelivered a few times and then dead-lettered.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use noetl_model::{ExecutionId, TraceContext};
use noetl_playbook::subscription::{
    DIRECTIVES_APPLIED, Directives, MessageContext, Subscription, logged_headers, start_for_message,
};
use noetl_work::DeadLetter;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::circuit::Circuit;
use super::memory::RecentMessages;
use super::outage::OutageLog;
use crate::RETRY;
use crate::control_plane::{
    ControlPlaneClient, ControlPlaneError, FaultOwner, RuntimeEvent, StartFailure, StartOutcome,
    SubscriptionView,
};
use crate::lease::SubscriptionLease;
use crate::source::Delivery;
use crate::spool::SpoolOutcome;

/// Default number of failures after which a message is dead-lettered.
const FAILURES_MAX: u64 = 5;

/// Number of times a message may fail through the control plane while others succeed, before the
/// failures count as the message's fault.
const HELD_UP_MAX: u64 = 20;

/// Delay before a message that could not be dead-lettered is redelivered.
const BURY_AGAIN: Duration = Duration::from_secs(5);

/// Dispatches the messages of one subscription.
pub(super) struct MessageDelivery {
    pub(super) plane: Arc<dyn ControlPlaneClient>,
    pub(super) view: SubscriptionView,
    pub(super) subscription: Arc<Subscription>,
    pub(super) ack_wait: Duration,
    pub(super) lease: Arc<SubscriptionLease>,
    pub(super) memory: Arc<RecentMessages>,
    pub(super) trouble: Arc<OutageLog>,
    pub(super) end: CancellationToken,
    /// Circuit breaker that decides when messages are spooled; `None` for replays.
    pub(super) circuit: Option<Arc<Circuit>>,
    /// Number of failures after which a message is dead-lettered, if the document sets one.
    pub(super) failures_max: Option<u64>,
}

impl MessageDelivery {
    /// Dispatches messages until each is acked or nacked, or `end` is cancelled.
    pub(super) async fn batch(&self, deliveries: Vec<Delivery>) {
        let mut open = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            // The message was processed, but its ack failed.
            match self.memory.is_done(&RecentMessages::place(&delivery.message)) {
                true => self.done(&delivery).await,
                false => open.push(delivery),
            }
        }
        if let Some(circuit) = self.circuit.as_ref().filter(|circuit| circuit.takes_new()) {
            open = self.keep(circuit, open).await;
            if open.is_empty() {
                return;
            }
        }
        let mut tries = 0;
        while !open.is_empty() {
            if !self.lease.is_held() {
                return give_back(open).await;
            }
            let left = self.round(open).await;
            if left.open.is_empty() {
                break;
            }
            self.trouble.begin(&left.reason).await;
            open = left.open;
            if let Some(circuit) = self.circuit.as_ref().filter(|circuit| circuit.failed()) {
                open = self.keep(circuit, open).await;
                if open.is_empty() {
                    return;
                }
            }
            tries += 1;
            let waited = tokio::time::sleep(RETRY.delay(tries));
            tokio::select! {
                () = self.end.cancelled() => return give_back(open).await,
                () = extending(waited, &open, self.ack_wait) => {}
            }
        }
        if let Some(circuit) = &self.circuit {
            circuit.got_through();
        }
        self.trouble.end("dispatched").await;
    }

    /// Spools messages and acks them at their source. Returns those that could not be spooled,
    /// which are retried as without a spool.
    async fn keep(&self, circuit: &Circuit, open: Vec<Delivery>) -> Vec<Delivery> {
        let mut left = Vec::new();
        for delivery in open {
            match circuit.keep(&delivery).await {
                Ok(SpoolOutcome::Yes) => self.done(&delivery).await,
                Ok(SpoolOutcome::Full) => left.push(delivery),
                Ok(SpoolOutcome::Aside) => {
                    let reason = "the spool is full".to_owned();
                    let fault = StartFailure {
                        of: FaultOwner::Plane,
                        code: "spool_full".to_owned(),
                        reason,
                    };
                    self.bury(&delivery, &fault, 1).await;
                }
                Err(error) => {
                    warn!(subscription = self.view.path, %error, "spooling message failed");
                    left.push(delivery);
                }
            }
        }
        left
    }

    /// Tries to start an execution for each message. Returns those to retry.
    pub(super) async fn round(&self, open: Vec<Delivery>) -> DeferredMessages {
        let mut starts = Vec::with_capacity(open.len());
        let mut shaped = Vec::with_capacity(open.len());
        for delivery in open {
            let context = MessageContext { subscription: self.view.id, push: None };
            match start_for_message(&self.subscription, context, &delivery.message) {
                Ok(mut start) => {
                    let directives = std::mem::take(&mut start.directives);
                    let applied = AppliedHeaders { directives, trace: start.trace.clone() };
                    starts.push(start);
                    shaped.push((delivery, applied));
                }
                // No retry can succeed.
                Err(rejection) => self.bury(&delivery, &rejection.into(), 1).await,
            }
        }
        if starts.is_empty() {
            return DeferredMessages::default();
        }
        let dispatch = &self.subscription.dispatch;
        let most = usize::try_from(dispatch.batch_max).unwrap_or(1);
        let together = (dispatch.batch_dispatch && starts.len() > 1).then_some(most);
        let handles: Vec<&Delivery> = shaped.iter().map(|(delivery, _)| delivery).collect();
        let asked = self.plane.start(starts, together);
        let outcomes = extending_all(asked, &handles, self.ack_wait).await;
        let got_through = |started: &StartOutcome| !matches!(started, StartOutcome::Failed(_));
        let is_through = outcomes.iter().any(got_through);
        let dealt_with = shaped.into_iter().zip(outcomes).map(|((delivery, applied), outcome)| {
            self.answer(delivery, applied, outcome, is_through)
        });
        let mut left = DeferredMessages::default();
        for (delivery, reason) in join_all(dealt_with).await.into_iter().flatten() {
            left.open.push(delivery);
            left.reason = reason;
        }
        left
    }

    /// Handles the outcome of one message. Returns the message and the reason if it must be
    /// retried.
    async fn answer(
        &self,
        delivery: Delivery,
        applied: AppliedHeaders,
        outcome: StartOutcome,
        is_through: bool,
    ) -> Option<(Delivery, String)> {
        let fault = match outcome {
            StartOutcome::New(execution) => {
                self.lease.count(|counts| counts.dispatched += 1);
                self.done(&delivery).await;
                self.record_directives(&delivery, &applied, execution).await;
                return None;
            }
            StartOutcome::Duplicate(_) => {
                self.lease.count(|counts| counts.duplicate += 1);
                self.done(&delivery).await;
                return None;
            }
            StartOutcome::Failed(fault) => fault,
        };
        let place = RecentMessages::place(&delivery.message);
        let is_its_own = match fault.of {
            FaultOwner::Message => true,
            // A route override to a missing playbook is the message's fault. A missing playbook in
            // the document is not.
            FaultOwner::Playbook => applied.directives.playbook.is_some(),
            FaultOwner::Plane => is_through && self.memory.held_up(&place) >= HELD_UP_MAX,
        };
        if !is_its_own {
            return Some((delivery, fault.reason));
        }
        let failures = self.memory.failed(&place);
        let most = self.failures_max.unwrap_or(FAILURES_MAX);
        if failures >= most {
            self.bury(&delivery, &fault, failures).await;
            return None;
        }
        self.lease.count(|counts| counts.failed += 1);
        let after = RETRY.delay(u32::try_from(failures).unwrap_or(u32::MAX));
        let _ = delivery.handle.nack(after).await;
        None
    }

    /// Acks a message at its source.
    async fn done(&self, delivery: &Delivery) {
        let place = RecentMessages::place(&delivery.message);
        match delivery.handle.ack().await {
            Ok(()) => self.memory.forget(&place),
            // The message will be redelivered and must not be processed twice.
            Err(_) => self.memory.done(&place),
        }
    }

    /// Stores a dead letter for a message, with the reason. Nacks the message if that fails, so that
    /// it is redelivered until the dead letter is durable.
    pub(super) async fn bury(&self, delivery: &Delivery, fault: &StartFailure, attempts: u64) {
        let message = &delivery.message;
        let headers = logged_headers(&self.subscription, &message.headers);
        let headers = headers.into_iter().map(|(name, value)| (name.to_lowercase(), value));
        let letter = DeadLetter {
            message: message.id.clone(),
            code: fault.code.clone(),
            reason: fault.reason.clone(),
            attempts,
            headers: headers.collect(),
            metadata: message.metadata.clone(),
            body: message.body.to_vec(),
        };
        let place = RecentMessages::place(message);
        match self.plane.bury(self.view.id, letter).await {
            Ok(()) => {
                self.lease.count(|counts| counts.dead_lettered += 1);
                let (subscription, message, reason) = (&self.view.path, &message.id, &fault.reason);
                warn!(subscription, message, reason, "message dead-lettered");
                match delivery.handle.term().await {
                    Ok(()) => self.memory.forget(&place),
                    Err(_) => self.memory.done(&place),
                }
            }
            Err(ControlPlaneError::Away(error) | ControlPlaneError::Refused(error)) => {
                let subscription = &self.view.path;
                warn!(subscription, message = message.id, error, "dead-lettering failed, retrying");
                let _ = delivery.handle.nack(BURY_AGAIN).await;
            }
        }
    }

    /// Records the applied header directives in the execution's event log. Only logs a failure.
    async fn record_directives(
        &self,
        delivery: &Delivery,
        applied: &AppliedHeaders,
        execution: ExecutionId,
    ) {
        let AppliedHeaders { directives, trace } = applied;
        if directives.applied.is_empty() {
            return;
        }
        let payload = directives.record(&delivery.message.id, trace.as_ref());
        let (event_type, status) = DIRECTIVES_APPLIED;
        let note = RuntimeEvent { log: execution, event_type, status, payload };
        if let Err(error) = self.plane.note(note).await {
            let subscription = &self.view.path;
            warn!(subscription, %error, execution.id = %execution, "failed to record directives");
        }
    }
}

/// Settings that a message's headers have chosen.
struct AppliedHeaders {
    directives: Directives,
    trace: Option<TraceContext>,
}

/// Messages to retry, and the reason.
#[derive(Default)]
pub(super) struct DeferredMessages {
    pub(super) open: Vec<Delivery>,
    pub(super) reason: String,
}

/// Nacks messages without delay, so that the source can redeliver them to any consumer.
async fn give_back(open: Vec<Delivery>) {
    for delivery in open {
        // If the nack fails, the message is redelivered after its ack deadline.
        let _ = delivery.handle.nack(Duration::ZERO).await;
    }
}

async fn extending<T>(work: impl Future<Output = T>, open: &[Delivery], wait: Duration) -> T {
    let handles: Vec<&Delivery> = open.iter().collect();
    extending_all(work, &handles, wait).await
}

/// Extends the ack deadlines of messages while `work` runs.
async fn extending_all<T>(work: impl Future<Output = T>, open: &[&Delivery], wait: Duration) -> T {
    tokio::pin!(work);
    let every = (wait / 3).max(Duration::from_millis(100));
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(every) => {
                for delivery in open {
                    // If extending fails, the message is redelivered and recognized as a duplicate.
                    let _ = delivery.handle.extend().await;
                }
            }
        }
    }
}
