//! Handles commit outcomes: performs effects once a commit is durable, and decides inputs again or
//! fails them if it is not.

use std::sync::Arc;

use noetl_compat as compat;
use noetl_engine::{Decision, Effect};
use noetl_model::command::DEFAULT_POOL;
use noetl_model::{Event, ExecutionId, Fact};
use noetl_store::{Committed, StoreError};
use tracing::{debug, warn};

use super::SubmitError;
use super::batch::{LocalClaim, UncommittedItem};
use super::retry::requeue_or_fail;
use super::writer::{CommitWaiters, JournalWriter, STORE_REST};
use crate::announcements::PendingAnnouncement;
use crate::assignment::CommandAssignment;
use crate::dispatch::PendingCommand;

impl JournalWriter {
    pub(super) async fn committed(
        &mut self,
        outcome: Result<Vec<Committed>, StoreError>,
        waiters: CommitWaiters,
    ) {
        match outcome {
            Ok(outcomes) => {
                if !outcomes.is_empty() {
                    self.parts.watch.store_works();
                }
                for (pending, place) in waiters.pending {
                    let execution = pending.execution;
                    match place {
                        Some(place) => self.finish(pending, outcomes[place]),
                        None => self.finish_eventless(pending, waiters.batch).await,
                    }
                    if !self.is_in_flight(execution) {
                        self.cache.drop_ended(execution);
                    }
                }
            }
            Err(error) => self.give_up(waiters, error).await,
        }
    }

    fn finish(&mut self, pending: UncommittedItem, outcome: Committed) {
        match outcome {
            Committed::Appended => self.appended(pending),
            Committed::Repeated => {
                self.drop_speculative_state(pending.execution);
                // The start is in the log. The other decisions on it were not written.
                let mut replies = pending.replies;
                let others = replies.split_off(replies.len().min(1));
                UncommittedItem::answer(replies, &pending.decision.events);
                self.retries.extend(requeue_or_fail(pending.execution, others, &SubmitError::Busy));
                self.unconfirmed.insert(pending.execution);
            }
            Committed::Taken => {
                self.drop_speculative_state(pending.execution);
                UncommittedItem::refuse(pending.replies, &SubmitError::Taken);
            }
            Committed::Conflict { found } => {
                self.parts.metrics.conflicts.inc();
                // Another process appended first, or an earlier batch was not committed, so this
                // append was not written.
                debug!(execution.id = %pending.execution, %found, "commit conflict, reloading");
                self.not_kept(pending, &SubmitError::Busy);
            }
        }
    }

    /// Completes an input that led to no event. If it was decided on a state that was not committed
    /// or that another process has since changed, the input is decided again. An append would have
    /// met that change in the log; a reply without an append has to check for it.
    async fn finish_eventless(&mut self, pending: UncommittedItem, batch: u64) {
        let is_broken = self.broken.get(&pending.execution).is_some_and(|newest| batch <= *newest);
        if is_broken {
            return self.not_kept(pending, &SubmitError::Busy);
        }
        if !self.parts.store.is_shared() || pending.replies.is_empty() {
            return self.appended(pending);
        }
        match self.parts.store.read(pending.execution, pending.decision.summary.version, 1).await {
            Ok(tail) if tail.is_empty() => self.appended(pending),
            Ok(_) => self.not_kept(pending, &SubmitError::Busy),
            Err(error) => self.not_kept(pending, &SubmitError::Store(Arc::new(error))),
        }
    }

    /// Drops the state of an execution whose append was not written. Inputs that were decided on it
    /// in the meantime are decided again, also those that led to no event.
    fn drop_speculative_state(&mut self, execution: ExecutionId) {
        self.cache.take(execution);
        self.broken.insert(execution, self.batch);
        self.discard_uncommitted_values(execution);
    }

    fn not_kept(&mut self, pending: UncommittedItem, error: &SubmitError) {
        self.drop_speculative_state(pending.execution);
        self.wait_again(pending.claims);
        for event in &pending.decision.events {
            self.reported.pop(&(pending.execution, event.id));
        }
        let is_open = match error {
            // Another process appended first, or the outcome is unknown.
            SubmitError::Busy => true,
            SubmitError::Store(error) => {
                matches!(error.failure(), StoreError::Unknown(_) | StoreError::EventTaken(_))
            }
            _ => false,
        };
        if is_open {
            self.retries.extend(requeue_or_fail(pending.execution, pending.replies, error));
        } else {
            UncommittedItem::refuse(pending.replies, error);
        }
    }

    fn appended(&mut self, pending: UncommittedItem) {
        let UncommittedItem { execution, decision, replies, claims, has_timers, snapshot } =
            pending;
        let Decision { events, effects, spans, .. } = decision;
        self.parts.watch.committed(&events);
        self.parts.metrics.events_appended.inc_by(events.len() as u64);
        // Before the effects: one of them may stop a command assigned here.
        for claim in claims {
            self.assign(claim);
        }
        if self.parts.dispatch.is_for_others() {
            self.offer(execution, &events, &effects);
        }
        for effect in effects {
            self.perform(execution, effect);
        }
        for span in spans {
            self.parts.traces.tell(span);
        }
        if let Some(snapshot) = snapshot {
            self.parts.snapshots.enqueue(execution, snapshot);
        }
        if has_timers {
            self.parts.due_written.notify_one();
        }
        UncommittedItem::answer(replies, &events);
    }

    /// Wakes long polls for commands that are still unclaimed. Queues those that published workers
    /// can run for an announcement on the bus.
    fn offer(&self, execution: ExecutionId, events: &[Arc<Event>], effects: &[Effect]) {
        let tenant = self.cache.tenant(execution);
        let mut open = effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch { command } => Some(*command),
            _ => None,
        });
        let mut next = open.next();
        // Events and effects are both in log order.
        for event in events {
            if let Fact::CommandIssued(issued) = &event.fact
                && next == Some(event.id.into())
            {
                let pool = issued.pool.as_deref().unwrap_or(DEFAULT_POOL);
                self.parts.dispatch.calls().keep(event);
                self.parts.dispatch.calls().offer(pool, &issued.tool, tenant);
                let announcements = self.parts.dispatch.announcements();
                if announcements.is_on() && compat::unsupported_reason(issued).is_none() {
                    announcements.enqueue(PendingAnnouncement::issued(
                        event.execution,
                        event.id.into(),
                        issued,
                    ));
                }
                next = open.next();
            }
        }
    }

    fn perform(&mut self, execution: ExecutionId, effect: Effect) {
        match effect {
            Effect::Dispatch { command } => {
                self.parts.dispatch.enqueue(PendingCommand { execution, command });
                self.parts.dispatch.wake();
            }
            Effect::Stop { command } => self.parts.dispatch.stop(command),
            Effect::Finish { status } => {
                self.parts.metrics.count_end(status);
                self.parts.watch.ended(execution, status);
            }
        }
    }

    fn assign(&self, claim: LocalClaim) {
        let LocalClaim { waiting, mut slot, issued, tenant, .. } = claim;
        let cancel = self.parts.dispatch.track_running(waiting, !issued.idempotent);
        slot.assign();
        let PendingCommand { execution, command } = waiting;
        let assignment = CommandAssignment { execution, command, tenant, issued, cancel, slot };
        // The channel's capacity equals the number of slots, so sending fails only if the worker is
        // gone. The command is then recovered at the next start.
        if self.parts.assignments.try_send(assignment).is_err() {
            self.parts.dispatch.untrack(waiting.command);
        }
    }

    /// Handles a failed commit. None of the batch was committed, or the outcome is unknown, so the
    /// states are dropped and reloaded. Callers may retry, because every input is idempotent.
    async fn give_up(&mut self, waiters: CommitWaiters, error: StoreError) {
        // Whatever the error says, only the log tells which appends were committed.
        self.unconfirmed.extend(waiters.pending.iter().map(|(pending, _)| pending.execution));
        let error = Arc::new(error);
        warn!(error = %chain(&*error), items = waiters.pending.len(), "failed to commit batch");
        self.parts.watch.store_failed(error.clone());
        let error = SubmitError::Store(error);
        for (pending, _) in waiters.pending {
            self.not_kept(pending, &error);
        }
        tokio::time::sleep(STORE_REST).await;
    }

    fn wait_again(&self, claims: Vec<LocalClaim>) {
        for claim in claims {
            let LocalClaim { waiting, slot, waited, .. } = claim;
            if waited {
                self.parts.dispatch.enqueue(waiting);
            }
            drop(slot);
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
