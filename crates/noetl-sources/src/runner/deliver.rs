//! What becomes of messages that were fetched together.
//!
//! Each is acknowledged once its execution is durable. While nothing can be started they are kept and
//! tried again, and their source is told so. What is refused for what it is comes again a few times
//! and is then put aside.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use noetl_control::DeadLetter;
use noetl_model::{ExecutionId, Value};
use noetl_playbook::subscription::Subscription;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::circuit::Circuit;
use super::memory::Memory;
use super::trouble::Trouble;
use crate::directives::{self, Directed};
use crate::held::Held;
use crate::plane::{Fault, FaultOf, Note, Plane, PlaneError, Standing, Started};
use crate::runtime::pause;
use crate::shape;
use crate::source::Delivery;
use crate::spool::Kept;

/// Failures after which a message is put aside when the document does not say.
const FAILURES_MAX: u64 = 5;

/// How often a message may be held up by the control plane while others get through, before it counts
/// as the message's fault.
const HELD_UP_MAX: u64 = 20;

/// How long until what could not be put aside comes again.
const BURY_AGAIN: Duration = Duration::from_secs(5);

/// What one subscription needs to deal with its messages.
pub(super) struct Deliver {
    pub(super) plane: Arc<dyn Plane>,
    pub(super) standing: Standing,
    pub(super) subscription: Arc<Subscription>,
    pub(super) ack_wait: Duration,
    pub(super) held: Arc<Held>,
    pub(super) memory: Arc<Memory>,
    pub(super) trouble: Arc<Trouble>,
    pub(super) end: CancellationToken,
    /// What says when messages are kept rather than held.
    pub(super) circuit: Option<Arc<Circuit>>,
    /// Failures after which a message is put aside, where the document says.
    pub(super) failures_max: Option<u64>,
}

impl Deliver {
    /// Deals with messages until each is answered for, or this is told to end.
    pub(super) async fn batch(&self, found: Vec<Delivery>) {
        let mut open = Vec::with_capacity(found.len());
        for delivery in found {
            // It was dealt with, and its source did not hear of it.
            match self.memory.is_done(&Memory::place(&delivery.message)) {
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
            if !self.held.is_held() {
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
            let waited = tokio::time::sleep(pause(tries));
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

    /// Keeps messages in the spool, and has their source forget them. Those that cannot be kept come
    /// back: they wait as they would without one.
    async fn keep(&self, circuit: &Circuit, open: Vec<Delivery>) -> Vec<Delivery> {
        let mut left = Vec::new();
        for delivery in open {
            match circuit.keep(&delivery).await {
                Ok(Kept::Yes) => self.done(&delivery).await,
                Ok(Kept::Full) => left.push(delivery),
                Ok(Kept::Aside) => {
                    let reason = "the spool is full".to_owned();
                    let fault = Fault { of: FaultOf::Plane, code: "spool_full".to_owned(), reason };
                    self.bury(&delivery, &fault, 1).await;
                }
                Err(error) => {
                    warn!(subscription = self.standing.path, %error, "a message is not kept");
                    left.push(delivery);
                }
            }
        }
        left
    }

    /// Tries to start an execution for each, and answers with those that have to wait.
    pub(super) async fn round(&self, open: Vec<Delivery>) -> Left {
        let mut starts = Vec::with_capacity(open.len());
        let mut shaped = Vec::with_capacity(open.len());
        for delivery in open {
            match shape::start(&self.subscription, self.standing.id, &delivery.message) {
                Ok((start, directed)) => {
                    starts.push(start);
                    shaped.push((delivery, directed));
                }
                // No try can help it.
                Err(fault) => self.bury(&delivery, &fault, 1).await,
            }
        }
        if starts.is_empty() {
            return Left::default();
        }
        let dispatch = &self.subscription.dispatch;
        let most = usize::try_from(dispatch.batch_max).unwrap_or(1);
        let together = (dispatch.batch_dispatch && starts.len() > 1).then_some(most);
        let handles: Vec<&Delivery> = shaped.iter().map(|(delivery, _)| delivery).collect();
        let asked = self.plane.start(starts, together);
        let outcomes = extending_all(asked, &handles, self.ack_wait).await;
        let got_through = |started: &Started| !matches!(started, Started::Failed(_));
        let is_through = outcomes.iter().any(got_through);
        let dealt_with = shaped.into_iter().zip(outcomes).map(|((delivery, directed), outcome)| {
            self.answer(delivery, directed, outcome, is_through)
        });
        let mut left = Left::default();
        for (delivery, reason) in join_all(dealt_with).await.into_iter().flatten() {
            left.open.push(delivery);
            left.reason = reason;
        }
        left
    }

    /// Deals with one by what became of it. One that has to wait comes back with the reason.
    async fn answer(
        &self,
        delivery: Delivery,
        directed: Directed,
        outcome: Started,
        is_through: bool,
    ) -> Option<(Delivery, String)> {
        let fault = match outcome {
            Started::New(execution) => {
                self.held.count(|counts| counts.dispatched += 1);
                self.done(&delivery).await;
                self.tell_directives(&delivery, directed, execution).await;
                return None;
            }
            Started::Duplicate(_) => {
                self.held.count(|counts| counts.duplicate += 1);
                self.done(&delivery).await;
                return None;
            }
            Started::Failed(fault) => fault,
        };
        let place = Memory::place(&delivery.message);
        let is_its_own = match fault.of {
            FaultOf::Message => true,
            // A route that leads nowhere is the message's choice; that the document names a playbook
            // which is not there is no message's fault.
            FaultOf::Playbook => directed.playbook.is_some(),
            FaultOf::Plane => is_through && self.memory.held_up(&place) >= HELD_UP_MAX,
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
        self.held.count(|counts| counts.failed += 1);
        let after = pause(u32::try_from(failures).unwrap_or(u32::MAX));
        let _ = delivery.handle.nack(after).await;
        None
    }

    /// Tells the source that a message is dealt with.
    async fn done(&self, delivery: &Delivery) {
        let place = Memory::place(&delivery.message);
        match delivery.handle.ack().await {
            Ok(()) => self.memory.forget(&place),
            // It will come again, and must not be dealt with twice.
            Err(_) => self.memory.done(&place),
        }
    }

    /// Puts a message aside for good, with the reason. Until that is durable it comes again.
    pub(super) async fn bury(&self, delivery: &Delivery, fault: &Fault, attempts: u64) {
        let message = &delivery.message;
        let headers = directives::by_name(&message.headers);
        let headers = headers.into_iter().map(|(name, value)| (name, Value::from(value)));
        let letter = DeadLetter {
            message: message.id.clone(),
            code: fault.code.clone(),
            reason: fault.reason.clone(),
            attempts,
            headers: headers.collect(),
            metadata: message.metadata.clone(),
            body: message.body.to_vec(),
        };
        let place = Memory::place(message);
        match self.plane.bury(self.standing.id, letter).await {
            Ok(()) => {
                self.held.count(|counts| counts.dead_lettered += 1);
                let (subscription, message, reason) =
                    (&self.standing.path, &message.id, &fault.reason);
                warn!(subscription, message, reason, "a message is put aside");
                match delivery.handle.term().await {
                    Ok(()) => self.memory.forget(&place),
                    Err(_) => self.memory.done(&place),
                }
            }
            Err(PlaneError::Away(error) | PlaneError::Refused(error)) => {
                let subscription = &self.standing.path;
                warn!(subscription, message = message.id, error, "a message is not put aside");
                let _ = delivery.handle.nack(BURY_AGAIN).await;
            }
        }
    }

    /// Says in an execution's log what the headers of its message decided, as far as it can be said.
    async fn tell_directives(
        &self,
        delivery: &Delivery,
        directed: Directed,
        execution: ExecutionId,
    ) {
        if directed.applied.is_empty() {
            return;
        }
        let payload = json!({
            "message_id": delivery.message.id,
            "applied": directed.applied,
            "route_override": {"playbook": directed.playbook, "pool": directed.pool},
            "trace": directed.trace,
        });
        let event_type = "subscription.message.directives_applied";
        let note = Note { log: execution, event_type, status: "APPLIED", payload };
        if let Err(error) = self.plane.note(note).await {
            let subscription = &self.standing.path;
            warn!(subscription, %error, execution.id = %execution, "directives are not told");
        }
    }
}

/// Those that have to wait, and why.
#[derive(Default)]
pub(super) struct Left {
    pub(super) open: Vec<Delivery>,
    pub(super) reason: String,
}

/// Lets the source hand them to whoever asks next.
async fn give_back(open: Vec<Delivery>) {
    for delivery in open {
        // Without an answer it comes again by itself.
        let _ = delivery.handle.nack(Duration::ZERO).await;
    }
}

async fn extending<T>(work: impl Future<Output = T>, open: &[Delivery], wait: Duration) -> T {
    let handles: Vec<&Delivery> = open.iter().collect();
    extending_all(work, &handles, wait).await
}

/// Tells the source that messages are still being dealt with, for as long as something takes.
async fn extending_all<T>(work: impl Future<Output = T>, open: &[&Delivery], wait: Duration) -> T {
    tokio::pin!(work);
    let every = (wait / 3).max(Duration::from_millis(100));
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(every) => {
                for delivery in open {
                    // One that is not heard comes again, and is known by then.
                    let _ = delivery.handle.extend().await;
                }
            }
        }
    }
}
