//! The fold: one event changes the state it describes. Total: what is in the log happened.

use std::sync::Arc;

use noetl_model::event::{Issued, Started};
use noetl_model::{
    CommandId, CommandState, Event, EventId, Fact, Failure, Map, Outcome, Routing, Seq, Timestamp,
};
use noetl_playbook::template::Slot;

use crate::execution::{Execution, Failing, OpenCommand, Status, Visit};
use crate::trail::{Outstanding, Trail, Undo};
use crate::values::{Kept, KeptFailure, failed_value, size_of_failure, size_of_slot, slot};

impl Execution {
    /// Folds in one event. Events come in the order of their places.
    pub fn apply(&mut self, event: &Event) {
        self.fold(event, &mut Trail::default());
    }

    /// Folds in one event and leaves what it replaces on the trail.
    pub(crate) fn fold(&mut self, event: &Event, trail: &mut Trail) {
        self.version = event.seq;
        self.last_event = Some(event.id);
        self.updated_at = event.at;
        match &event.fact {
            Fact::PlaybookStarted(started) => self.begin(started, event.seq, event.at, trail),
            Fact::StepEntered { step, generation, tokens, round } => {
                self.enter(step, *generation, *tokens, *round, trail);
            }
            Fact::TokensDropped { step, tokens } => self.use_tokens(step, *tokens, trail),
            Fact::CommandIssued(issued) => self.issue(event.id, issued, trail),
            Fact::CommandClaimed { command, worker, .. } => {
                self.hold(*command, CommandState::Claimed, worker, trail);
            }
            Fact::CommandStarted { command, worker, .. } => {
                self.hold(*command, CommandState::Running, worker, trail);
            }
            Fact::CallDone { command, data, reference, .. } => {
                let held = self.held_bytes();
                let answer = self.limits.keep_answer(held, data, reference.as_ref(), event.seq);
                trail.note_slot(&answer.slot);
                self.change(*command, trail, |command| command.answer = Some(answer));
            }
            Fact::CommandCompleted { command, .. } => self.complete(*command, trail),
            Fact::CommandFailed { command, .. } | Fact::CommandExpired { command, .. } => {
                self.close(*command, trail);
            }
            Fact::CommandCancelled { command, .. } => self.stop(*command, trail),
            Fact::ContextUpdated { values, .. } => self.update(values, event.seq, trail),
            Fact::StepExited { step, generation, outcome, next } => {
                self.exit(step, *generation, outcome, event.seq, trail);
                for arc in next.taken.iter().filter(|arc| !arc.back) {
                    self.waiting.entry(arc.step.clone()).or_default().push(step.clone());
                    trail.push(|| Undo::Token(arc.step.clone()));
                }
                if matches!(outcome, Outcome::Done) {
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
            // Said by a worker or client, or elsewhere, or of no execution at all; only what the
            // engine decided drives state.
            Fact::CallFailed { .. }
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_) => {}
        }
    }

    fn begin(&mut self, started: &Started, seq: Seq, at: Timestamp, trail: &mut Trail) {
        self.status = Status::Running;
        self.started_at = at;
        for (name, value) in &started.workload {
            let held = self.held_bytes();
            let (source, bytes) = self.limits.keep(held, value, seq, Some(name));
            trail.note(&source);
            self.workload.set(Arc::from(name.as_str()), slot(source), bytes);
        }
        // The workload is kept once, as names; the rest of the start is small.
        let started = Started { workload: Map::new(), ..started.clone() };
        self.started = Some(Arc::new(started));
    }

    fn enter(
        &mut self,
        step: &Arc<str>,
        generation: u32,
        tokens: u32,
        round: Option<u32>,
        trail: &mut Trail,
    ) {
        self.use_tokens(step, tokens, trail);
        let before = self.generations.insert(step.clone(), generation);
        trail.push(|| Undo::Generation(step.clone(), before));
        self.current_step = Some(step.clone());
        if let Some(round) = round {
            let before = self.rounds.insert(step.clone(), round);
            trail.push(|| Undo::Round(step.clone(), before));
        }
        let visit = (step.clone(), generation);
        let before = self.running.insert(visit.clone(), Visit::default());
        trail.push(|| Undo::Visit(visit, before));
    }

    fn use_tokens(&mut self, step: &Arc<str>, tokens: u32, trail: &mut Trail) {
        let Some(waiting) = self.waiting.get_mut(step) else { return };
        let used = usize::try_from(tokens).unwrap_or(usize::MAX).min(waiting.len());
        let used = waiting.drain(..used).collect();
        if waiting.is_empty() {
            self.waiting.remove(step);
        }
        trail.push(|| Undo::Tokens(step.clone(), used));
    }

    fn issue(&mut self, id: EventId, issued: &Arc<Issued>, trail: &mut Trail) {
        let command = OpenCommand::new(issued.clone());
        self.command_bytes += command.bytes;
        let before = self.commands.insert(id.into(), command);
        self.command_bytes -= before.as_ref().map_or(0, |before| before.bytes);
        trail.push(|| Undo::Command(id.into(), before.map(Box::new)));
    }

    fn hold(
        &mut self,
        command: CommandId,
        state: CommandState,
        worker: &Arc<str>,
        trail: &mut Trail,
    ) {
        self.change(command, trail, |command| {
            command.state = state;
            command.worker = Some(worker.clone());
        });
    }

    fn change(&mut self, id: CommandId, trail: &mut Trail, change: impl FnOnce(&mut OpenCommand)) {
        if let Some(command) = self.commands.get_mut(&id) {
            trail.push(|| Undo::Command(id, Some(Box::new(command.clone()))));
            change(command);
        }
    }

    fn close(&mut self, id: CommandId, trail: &mut Trail) -> Option<OpenCommand> {
        let command = self.commands.remove(&id)?;
        self.command_bytes -= command.bytes;
        trail.push(|| Undo::Command(id, Some(Box::new(command.clone()))));
        Some(command)
    }

    fn complete(&mut self, command: CommandId, trail: &mut Trail) {
        let Some(command) = self.close(command, trail) else { return };
        let visit = (command.issued.step.clone(), command.issued.generation);
        if let Some(under_way) = self.running.get_mut(&visit) {
            let before = std::mem::replace(under_way, Visit { data: command.answer });
            trail.push(|| Undo::Visit(visit, Some(before)));
        }
    }

    fn stop(&mut self, command: CommandId, trail: &mut Trail) {
        if let Some(command) = self.close(command, trail) {
            self.leave(&command.issued.step, command.issued.generation, trail);
        }
    }

    /// Ends a visit, if it is under way.
    fn leave(&mut self, step: &Arc<str>, generation: u32, trail: &mut Trail) -> Option<Visit> {
        let visit = (step.clone(), generation);
        let ended = self.running.remove(&visit)?;
        trail.push(|| Undo::Visit(visit, Some(ended.clone())));
        Some(ended)
    }

    fn update(&mut self, values: &Map, seq: Seq, trail: &mut Trail) {
        for (path, value) in values {
            let held = self.held_bytes();
            let (source, bytes) = self.limits.keep(held, value, seq, Some(path));
            trail.note(&source);
            let mut names = path.split('.');
            let name: Arc<str> = Arc::from(names.next().unwrap_or_default());
            let below: Vec<&str> = names.collect();
            let (slot, bytes) = if below.is_empty() {
                (slot(source), bytes)
            } else {
                let before = self.ctx.get(&name).cloned().unwrap_or_default();
                let slot = before.written(&below, source);
                let bytes = size_of_slot(&slot);
                (slot, bytes)
            };
            let before = self.ctx.set(name.clone(), slot, bytes);
            trail.push(|| Undo::Variable(name, before));
        }
    }

    fn exit(
        &mut self,
        step: &Arc<str>,
        generation: u32,
        outcome: &Outcome,
        seq: Seq,
        trail: &mut Trail,
    ) {
        let visit = self.leave(step, generation, trail).unwrap_or_default();
        match outcome {
            Outcome::Done => {
                self.counts.completed += 1;
                if let Some(Kept { slot, bytes }) = visit.data {
                    self.set_result(step, slot, bytes, trail);
                }
            }
            Outcome::Failed { failure, handled } => {
                self.counts.failed += 1;
                let held = self.held_bytes();
                let value = failed_value(failure);
                let (source, bytes) = self.limits.keep(held, &value, seq, None);
                trail.note(&source);
                self.set_result(step, slot(source), bytes, trail);
                if !handled && self.failing.is_none() {
                    let failure = self.keep_failure(failure, seq, trail);
                    self.failing = Some(Arc::new(Failing { step: step.clone(), failure }));
                }
            }
        }
    }

    fn set_result(&mut self, step: &Arc<str>, data: Slot, bytes: usize, trail: &mut Trail) {
        let before = self.results.set(step.clone(), data, bytes);
        trail.push(|| Undo::Result(step.clone(), before));
    }

    fn keep_failure(&self, failure: &Failure, seq: Seq, trail: &mut Trail) -> KeptFailure {
        let bytes = size_of_failure(failure);
        if bytes <= self.limits.value_bytes {
            return KeptFailure::Held(failure.clone());
        }
        trail.note_placed();
        KeptFailure::At { seq, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }

    fn note_leaf(&mut self, step: &Arc<str>, next: &Routing) {
        if next.taken.is_empty() && self.leaf.as_deref() != Some("end") {
            self.leaf = Some(step.clone());
        }
    }

    fn end(&mut self, status: Status, at: Timestamp, error: Option<String>, trail: &mut Trail) {
        self.status = status;
        self.ended_at = Some(at);
        self.error = error;
        self.command_bytes = 0;
        let outstanding = Outstanding {
            running: std::mem::take(&mut self.running),
            waiting: std::mem::take(&mut self.waiting),
            commands: std::mem::take(&mut self.commands),
        };
        trail.push(|| Undo::Ended(Box::new(outstanding)));
    }
}
