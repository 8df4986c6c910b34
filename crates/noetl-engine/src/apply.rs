//! The fold: applies one event to the state. Total: every event in the event log has happened, so
//! none is rejected.

mod loops;

use std::sync::Arc;

use noetl_model::event::{CommandSpec, ExecutionStart, ParkReason};
use noetl_model::{
    CommandId, CommandState, Event, Fact, Failure, FailureKind, Map, Routing, Seq, StepOutcome,
    Timestamp,
};
use noetl_template::ValueSlot;

use crate::execution::{Execution, OpenCommand, PendingFailure, Status, StepRun, WaitingToken};
use crate::loaded::local_key;
use crate::loops::ItemOutcome;
use crate::undo_log::{OutstandingState, UndoEntry, UndoLog};
use crate::values::{StoredFailure, StoredValue, failed_value, size_of_failure, slot};

impl Execution {
    /// Folds one event into the state. Events must arrive in order of their sequence numbers.
    pub fn apply(&mut self, event: &Event) {
        self.fold(event, &mut UndoLog::default());
    }

    /// Folds one event into the state and adds the values it replaces to the undo log.
    pub(crate) fn fold(&mut self, event: &Event, trail: &mut UndoLog) {
        self.version = event.seq;
        self.last_event = Some(event.id);
        self.updated_at = event.at;
        match &event.fact {
            Fact::PlaybookStarted(started) => self.begin(started, event.seq, event.at, trail),
            Fact::StepEntered { step, run, tokens, round, .. } => {
                self.enter(step, *run, *tokens, *round, trail);
            }
            Fact::TokensDropped { step, tokens } => self.use_tokens(step, *tokens, trail),
            Fact::StepDenied { step, tokens } => {
                self.use_tokens(step, *tokens, trail);
                self.release(step, trail);
            }
            Fact::StepHeld { step, tokens, from, until } => {
                self.use_tokens(step, *tokens, trail);
                self.hold_token(step, WaitingToken { from: from.clone(), until: *until }, trail);
            }
            Fact::Loop(fact) => self.loop_moved(fact, event.seq, trail),
            Fact::CommandIssued(issued) => self.issue(event, issued, trail),
            Fact::CommandParked { command, on, .. } => {
                self.change(*command, trail, |command| {
                    command.parked = Some(on.clone());
                    command.since = event.at;
                });
                self.note_child(*command, on, trail);
            }
            Fact::CommandClaimed { command, worker, .. } => {
                self.hold(*command, CommandState::Claimed, worker, event.at, trail);
            }
            Fact::CommandStarted { command, worker, .. } => {
                self.hold(*command, CommandState::Running, worker, event.at, trail);
            }
            Fact::CallDone { command, data, reference, .. } => {
                let inline_bytes = self.inline_bytes();
                let answer =
                    self.limits.store_answer(inline_bytes, data, reference.as_ref(), event.seq);
                trail.note_slot(&answer.slot);
                self.change(*command, trail, |command| command.answer = Some(answer));
            }
            Fact::CommandCompleted { command, .. } => {
                self.forget_child(*command, trail);
                self.complete(*command, trail);
            }
            Fact::CommandFailed { command, failure, .. } => {
                // A command that timed out still has a child execution to cancel.
                if failure.kind != FailureKind::Timeout {
                    self.forget_child(*command, trail);
                }
                if let Some(command) = self.close(*command, trail) {
                    self.item_ended(&command, Some(loops::failed(failure)), trail);
                }
            }
            Fact::CommandExpired { command, .. } => {
                if let Some(command) = self.close(*command, trail) {
                    self.item_ended(&command, None, trail);
                }
            }
            Fact::CommandCancelled { command, .. } => self.stop(*command, trail),
            Fact::ContextUpdated { step, run, values, locals } => {
                self.update(values, event.seq, trail);
                self.update_locals((step.clone(), *run), locals, event.seq, trail);
            }
            Fact::StepExited { step, run, outcome, next } => {
                self.exit(step, *run, outcome, event.seq, trail);
                for arc in next.taken.iter().filter(|arc| !arc.back) {
                    self.waiting.entry(arc.step.clone()).or_default().push(step.clone());
                    trail.push(|| UndoEntry::Token(arc.step.clone()));
                }
                if matches!(outcome, StepOutcome::Done | StepOutcome::Skipped) {
                    self.note_leaf(step, next);
                }
            }
            Fact::PlaybookCompleted { .. } => self.end(Status::Completed, event.at, None, trail),
            Fact::PlaybookFailed { failure, .. } => {
                self.end(Status::Failed, event.at, Some(failure.to_string()), trail);
            }
            Fact::PlaybookCancelled { reason } => {
                self.end(Status::Cancelled, event.at, reason.clone(), trail);
            }
            // Reported by a worker or client, imported, or about no execution at all. Only events
            // that the engine decided drive state.
            Fact::CallFailed { .. }
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_) => {}
        }
    }

    fn begin(&mut self, started: &ExecutionStart, seq: Seq, at: Timestamp, trail: &mut UndoLog) {
        self.status = Status::Running;
        self.started_at = at;
        for (name, value) in &started.workload {
            let inline_bytes = self.inline_bytes();
            let (source, bytes) =
                self.limits.store_or_reference(inline_bytes, value, seq, Some(name));
            trail.note(&source);
            self.workload.set(Arc::from(name.as_str()), slot(source), bytes);
        }
        // The state stores the workload only as names; the rest of the start is small.
        let started = ExecutionStart { workload: Map::new(), ..started.clone() };
        self.started = Some(Arc::new(started));
    }

    fn enter(
        &mut self,
        step: &Arc<str>,
        run: u32,
        tokens: u32,
        round: Option<u32>,
        trail: &mut UndoLog,
    ) {
        self.use_tokens(step, tokens, trail);
        self.release(step, trail);
        let before = self.runs.insert(step.clone(), run);
        trail.push(|| UndoEntry::Generation(step.clone(), before));
        self.current_step = Some(step.clone());
        if let Some(round) = round {
            let before = self.rounds.insert(step.clone(), round);
            trail.push(|| UndoEntry::Round(step.clone(), before));
        }
        let step_run_key = (step.clone(), run);
        let before = self.running.insert(step_run_key.clone(), StepRun::default());
        trail.push(|| UndoEntry::StepRun(step_run_key, before));
    }

    fn note_child(&mut self, command: CommandId, on: &ParkReason, trail: &mut UndoLog) {
        let ParkReason::Child(child) = on else { return };
        if child.waits {
            let before = self.children.insert(command, child.execution);
            trail.push(|| UndoEntry::Child(command, before));
        } else {
            self.sent.push(child.execution);
            trail.push(|| UndoEntry::Sent);
        }
    }

    fn forget_child(&mut self, command: CommandId, trail: &mut UndoLog) {
        if let Some(before) = self.children.remove(&command) {
            trail.push(|| UndoEntry::Child(command, Some(before)));
        }
    }

    /// Adds a token that waits for admission.
    fn hold_token(&mut self, step: &Arc<str>, token: WaitingToken, trail: &mut UndoLog) {
        let tokens = self.held.entry(step.clone()).or_default();
        let before = tokens.clone();
        tokens.push(token);
        trail.push(|| UndoEntry::Held(step.clone(), before));
    }

    /// Removes the tokens that waited for admission: the step admitted them together, or denied
    /// them.
    fn release(&mut self, step: &Arc<str>, trail: &mut UndoLog) {
        if let Some(before) = self.held.remove(step) {
            trail.push(|| UndoEntry::Held(step.clone(), before));
        }
    }

    fn use_tokens(&mut self, step: &Arc<str>, tokens: u32, trail: &mut UndoLog) {
        let Some(waiting) = self.waiting.get_mut(step) else { return };
        let used = usize::try_from(tokens).unwrap_or(usize::MAX).min(waiting.len());
        let used = waiting.drain(..used).collect();
        if waiting.is_empty() {
            self.waiting.remove(step);
        }
        trail.push(|| UndoEntry::Tokens(step.clone(), used));
    }

    fn issue(&mut self, event: &Event, issued: &Arc<CommandSpec>, trail: &mut UndoLog) {
        let id = event.id;
        let command = OpenCommand::new(issued.clone(), event.at);
        self.command_bytes += command.bytes;
        let before = self.commands.insert(id.into(), command);
        self.command_bytes -= before.as_ref().map_or(0, |before| before.bytes);
        trail.push(|| UndoEntry::Command(id.into(), before.map(Box::new)));
        if let Some(item) = &issued.item {
            self.item_issued(issued, item, trail);
        }
    }

    fn hold(
        &mut self,
        command: CommandId,
        state: CommandState,
        worker: &Arc<str>,
        at: Timestamp,
        trail: &mut UndoLog,
    ) {
        self.change(command, trail, |command| {
            command.state = state;
            command.since = at;
            command.worker = Some(worker.clone());
        });
    }

    fn change(
        &mut self,
        id: CommandId,
        trail: &mut UndoLog,
        change: impl FnOnce(&mut OpenCommand),
    ) {
        if let Some(command) = self.commands.get_mut(&id) {
            trail.push(|| UndoEntry::Command(id, Some(Box::new(command.clone()))));
            change(command);
        }
    }

    fn close(&mut self, id: CommandId, trail: &mut UndoLog) -> Option<OpenCommand> {
        let command = self.commands.remove(&id)?;
        self.command_bytes -= command.bytes;
        trail.push(|| UndoEntry::Command(id, Some(Box::new(command.clone()))));
        Some(command)
    }

    fn complete(&mut self, command: CommandId, trail: &mut UndoLog) {
        let Some(command) = self.close(command, trail) else { return };
        // The step run, or the item, continues with another segment of its pipeline.
        if command.issued.split().is_some_and(|split| split.partial) {
            return self.item_ended(&command, None, trail);
        }
        if command.issued.item.is_some() {
            let null = || StoredValue { slot: ValueSlot::default(), bytes: 0 };
            let end = ItemOutcome::Done(command.answer.clone().unwrap_or_else(null));
            self.item_ended(&command, Some(end), trail);
            return;
        }
        let step_run_key = (command.issued.step.clone(), command.issued.run);
        if let Some(step_run) = self.running.get_mut(&step_run_key) {
            let before = step_run.clone();
            step_run.data = command.answer;
            trail.push(|| UndoEntry::StepRun(step_run_key, Some(before)));
        }
    }

    fn stop(&mut self, command: CommandId, trail: &mut UndoLog) {
        let Some(command) = self.close(command, trail) else { return };
        if command.issued.item.is_some() {
            self.item_ended(&command, Some(ItemOutcome::Skipped), trail);
        } else {
            self.leave(&command.issued.step, command.issued.run, trail);
        }
    }

    /// Ends a step run and returns it, or returns `None` if it is not active.
    fn leave(&mut self, step: &Arc<str>, run: u32, trail: &mut UndoLog) -> Option<StepRun> {
        let step_run_key = (step.clone(), run);
        self.drop_loop(&step_run_key, trail);
        let ended = self.running.remove(&step_run_key)?;
        trail.push(|| UndoEntry::StepRun(step_run_key, Some(ended.clone())));
        Some(ended)
    }

    fn update(&mut self, values: &Map, seq: Seq, trail: &mut UndoLog) {
        for (path, value) in values {
            let inline_bytes = self.inline_bytes();
            let (source, bytes) =
                self.limits.store_or_reference(inline_bytes, value, seq, Some(path));
            trail.note(&source);
            let (name, before) = self.ctx.write(path, source, bytes);
            trail.push(|| UndoEntry::Variable(name, before));
        }
    }

    /// Stores the variables that a step run set for itself.
    fn update_locals(
        &mut self,
        step_run_key: (Arc<str>, u32),
        values: &Map,
        seq: Seq,
        trail: &mut UndoLog,
    ) {
        let inline_bytes = self.inline_bytes();
        let limits = self.limits;
        let Some(step_run) = self.running.get_mut(&step_run_key).filter(|_| !values.is_empty())
        else {
            return;
        };
        let before = step_run.clone();
        let inline_bytes = inline_bytes - before.locals.bytes;
        for (path, value) in values {
            let inline_bytes = inline_bytes + step_run.locals.bytes;
            let (source, bytes) =
                limits.store_or_reference(inline_bytes, value, seq, Some(&local_key(path)));
            trail.note(&source);
            step_run.locals.write(path, source, bytes);
        }
        trail.push(|| UndoEntry::StepRun(step_run_key, Some(before)));
    }

    fn exit(
        &mut self,
        step: &Arc<str>,
        run: u32,
        outcome: &StepOutcome,
        seq: Seq,
        trail: &mut UndoLog,
    ) {
        let step_run = self.leave(step, run, trail).unwrap_or_default();
        match outcome {
            StepOutcome::Skipped => {}
            StepOutcome::Done => {
                self.counts.completed += 1;
                if let Some(StoredValue { slot, bytes }) = step_run.data {
                    self.set_result(step, slot, bytes, trail);
                }
            }
            StepOutcome::Failed { failure, handled, drains } => {
                self.counts.failed += 1;
                let inline_bytes = self.inline_bytes();
                let value = failed_value(failure);
                let (source, bytes) =
                    self.limits.store_or_reference(inline_bytes, &value, seq, None);
                trail.note(&source);
                self.set_result(step, slot(source), bytes, trail);
                if *handled {
                    return;
                }
                let failure = self.keep_failure(failure, seq, trail);
                let failing = Arc::new(PendingFailure { step: step.clone(), failure });
                if *drains {
                    self.deferred_failure.get_or_insert(failing);
                } else {
                    self.failing.get_or_insert(failing);
                }
            }
        }
    }

    fn set_result(&mut self, step: &Arc<str>, data: ValueSlot, bytes: usize, trail: &mut UndoLog) {
        let before = self.results.set(step.clone(), data, bytes);
        trail.push(|| UndoEntry::Result(step.clone(), before));
    }

    fn keep_failure(&self, failure: &Failure, seq: Seq, trail: &mut UndoLog) -> StoredFailure {
        let bytes = size_of_failure(failure);
        if bytes <= self.limits.value_bytes {
            return StoredFailure::Held(failure.clone());
        }
        trail.note_placed();
        StoredFailure::At { seq, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }

    fn note_leaf(&mut self, step: &Arc<str>, next: &Routing) {
        if next.taken.is_empty() && self.leaf.as_deref() != Some("end") {
            self.leaf_before = self.leaf.replace(step.clone());
        }
    }

    fn end(&mut self, status: Status, at: Timestamp, error: Option<String>, trail: &mut UndoLog) {
        self.status = status;
        self.ended_at = Some(at);
        self.error = error;
        self.command_bytes = 0;
        let outstanding = OutstandingState {
            running: std::mem::take(&mut self.running),
            waiting: std::mem::take(&mut self.waiting),
            commands: std::mem::take(&mut self.commands),
            loops: std::mem::take(&mut self.loops),
            held: std::mem::take(&mut self.held),
        };
        trail.push(|| UndoEntry::Ended(Box::new(outstanding)));
    }
}
