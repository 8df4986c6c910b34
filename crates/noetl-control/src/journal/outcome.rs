//! What a commit's outcome leads to: effects once it is durable, another try once it is not.

use std::sync::Arc;

use noetl_engine::Effect;
use noetl_model::command::DEFAULT_POOL;
use noetl_model::{Event, ExecutionId, Fact};
use noetl_store::{Committed, StoreError};
use tracing::{debug, warn};

use super::SubmitError;
use super::again::decide_again;
use super::batch::{LocalClaim, Pending};
use super::writer::{STORE_REST, Waiters, Writer};
use crate::announcing::Note;
use crate::dispatch::Waiting;
use crate::local::Assignment;
use crate::lower;

impl Writer {
    pub(super) async fn committed(
        &mut self,
        outcome: Result<Vec<Committed>, StoreError>,
        waiters: Waiters,
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
                    if !self.is_under_way(execution) {
                        self.cache.drop_ended(execution);
                    }
                }
            }
            Err(error) => self.give_up(waiters, error).await,
        }
    }

    fn finish(&mut self, pending: Pending, outcome: Committed) {
        match outcome {
            Committed::Appended => self.appended(pending),
            Committed::Repeated => {
                self.cache.take(pending.execution);
                // The start is what it was; what else was decided on it was not written.
                let mut replies = pending.replies;
                let others = replies.split_off(replies.len().min(1));
                Pending::answer(replies, &pending.events);
                self.again.extend(decide_again(pending.execution, others, &SubmitError::Busy));
                self.suspects.insert(pending.execution);
            }
            Committed::Taken => {
                self.cache.take(pending.execution);
                Pending::refuse(pending.replies, &SubmitError::Taken);
            }
            Committed::Conflict { found } => {
                self.parts.metrics.conflicts.inc();
                // What this was decided on was not kept, and neither is this.
                debug!(execution.id = %pending.execution, %found, "the state is read again");
                self.not_kept(pending, &SubmitError::Busy);
            }
        }
    }

    /// Answers what led to no event, unless it was decided on something that was not kept, or that
    /// another process has moved: an append would have met that in the log, an answer without one
    /// has to look.
    async fn finish_eventless(&mut self, pending: Pending, batch: u64) {
        let is_broken = self.broken.get(&pending.execution).is_some_and(|newest| batch <= *newest);
        if is_broken {
            return self.not_kept(pending, &SubmitError::Busy);
        }
        if !self.parts.store.is_shared() || pending.replies.is_empty() {
            return self.appended(pending);
        }
        match self.parts.store.read(pending.execution, pending.version, 1).await {
            Ok(tail) if tail.is_empty() => self.appended(pending),
            Ok(_) => self.not_kept(pending, &SubmitError::Busy),
            Err(error) => self.not_kept(pending, &SubmitError::Store(Arc::new(error))),
        }
    }

    fn not_kept(&mut self, pending: Pending, error: &SubmitError) {
        self.cache.take(pending.execution);
        self.broken.insert(pending.execution, self.batch);
        self.forget_doomed(pending.execution);
        self.wait_again(pending.claims);
        for event in &pending.events {
            self.reported.pop(&(pending.execution, event.id));
        }
        let is_open = match error {
            // Somebody else was there first, or nobody knows whether this was.
            SubmitError::Busy => true,
            SubmitError::Store(error) => {
                matches!(error.failure(), StoreError::Unknown(_) | StoreError::EventTaken(_))
            }
            _ => false,
        };
        if is_open {
            self.again.extend(decide_again(pending.execution, pending.replies, error));
        } else {
            Pending::refuse(pending.replies, error);
        }
    }

    fn appended(&mut self, pending: Pending) {
        let Pending {
            execution, events, effects, replies, claims, has_due, snapshot, spans, ..
        } = pending;
        self.parts.watch.committed(&events);
        self.parts.metrics.events_appended.inc_by(events.len() as u64);
        // Before the effects: one of them may be to stop what is assigned here.
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
            self.parts.snapshots.keep(execution, snapshot);
        }
        if has_due {
            self.parts.due_written.notify_one();
        }
        Pending::answer(replies, &events);
    }

    /// Calls workers elsewhere for what nobody has claimed, and leaves it to be announced to those
    /// that listen on a bus, if they have the tools.
    fn offer(&self, execution: ExecutionId, events: &[Arc<Event>], effects: &[Effect]) {
        let tenant = self.cache.tenant(execution);
        let mut open = effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch { command, claimed_by: None } => Some(*command),
            _ => None,
        });
        let mut next = open.next();
        // Both are in the order of the log.
        for event in events {
            if let Fact::CommandIssued(issued) = &event.fact
                && next == Some(event.id.into())
            {
                let pool = issued.pool.as_deref().unwrap_or(DEFAULT_POOL);
                self.parts.dispatch.calls().keep(event);
                self.parts.dispatch.calls().offer(pool, &issued.tool, tenant);
                let announcements = self.parts.dispatch.announcements();
                if announcements.is_on() && lower::lacking(issued).is_none() {
                    announcements.leave(Note::issued(event.execution, event.id.into(), issued));
                }
                next = open.next();
            }
        }
    }

    fn perform(&mut self, execution: ExecutionId, effect: Effect) {
        match effect {
            Effect::Dispatch { command, claimed_by: None } => {
                self.parts.dispatch.wait(Waiting { execution, command });
                self.parts.dispatch.wake();
            }
            // Claimed in the same transaction: it is assigned with its slot.
            Effect::Dispatch { claimed_by: Some(_), .. } => {}
            Effect::Stop { command } => self.parts.dispatch.stop(command),
            Effect::Finish { status } => {
                self.parts.metrics.count_end(status);
                self.parts.watch.ended(execution, status);
            }
        }
    }

    fn assign(&self, claim: LocalClaim) {
        let LocalClaim { waiting, mut slot, issued, tenant, .. } = claim;
        let cancel = self.parts.dispatch.runs(waiting, !issued.idempotent);
        slot.assign();
        let Waiting { execution, command } = waiting;
        let assignment = Assignment { execution, command, tenant, issued, cancel, slot };
        // The channel holds as many assignments as there are slots, so only a worker that is gone
        // can refuse one; the command is then found again at the next start.
        if self.parts.assignments.try_send(assignment).is_err() {
            self.parts.dispatch.ended(waiting.command);
        }
    }

    /// Nothing of the batch was kept, or it is not known what was: states are dropped and read
    /// again, and everybody may come again, since every input is idempotent.
    async fn give_up(&mut self, waiters: Waiters, error: StoreError) {
        // Whatever was said of it, the log alone knows what was kept.
        self.suspects.extend(waiters.pending.iter().map(|(pending, _)| pending.execution));
        let error = Arc::new(error);
        warn!(error = %chain(&*error), items = waiters.pending.len(), "a batch was not committed");
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
                self.parts.dispatch.wait(waiting);
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
