//! Undo log of a decision that needs a value that is not loaded.
//!
//! A decision folds its events into the state as it records them; copying the state first would
//! make a long execution quadratic. Each change of a collection therefore adds the replaced value
//! to the undo log, and only the rest of the state, which is small, is copied.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::ExecutionStart;
use noetl_model::{CommandId, EventId, ExecutionId, Seq, Timestamp};
use noetl_template::{ValueSlot, ValueSource};

use crate::execution::{
    Execution, OpenCommand, PendingFailure, Status, StepCounts, StepRun, WaitingToken,
};
use crate::loops::{self, LoopState};
use crate::values::{PreviousValue, ValueTable};

/// Changes of collections, oldest first. Records nothing if `changes` is `None`, for folds that are
/// never undone.
#[derive(Default)]
pub(crate) struct UndoLog {
    changes: Option<Vec<UndoEntry>>,
    /// Whether the state stores a value of the last event only as a reference.
    placed: bool,
}

/// Value that one change replaced.
pub(crate) enum UndoEntry {
    Generation(Arc<str>, Option<u32>),
    Round(Arc<str>, Option<u32>),
    StepRun((Arc<str>, u32), Option<StepRun>),
    /// A token was added at a step.
    Token(Arc<str>),
    /// Tokens of a step were consumed; holds them.
    Tokens(Arc<str>, Vec<Arc<str>>),
    Command(CommandId, Option<Box<OpenCommand>>),
    Result(Arc<str>, PreviousValue),
    Variable(Arc<str>, PreviousValue),
    /// A loop was added, or removed with this state.
    Loop((Arc<str>, u32), Option<Box<LoopState>>),
    InLoop((Arc<str>, u32), loops::LoopUndo),
    /// Tokens that waited for admission at a step.
    Held(Arc<str>, Vec<WaitingToken>),
    /// Child execution that a command waits for.
    Child(CommandId, Option<ExecutionId>),
    /// A child execution was started that no command waits for.
    Sent,
    Ended(Box<OutstandingState>),
}

/// State that the end of an execution clears.
pub(crate) struct OutstandingState {
    pub(crate) running: BTreeMap<(Arc<str>, u32), StepRun>,
    pub(crate) waiting: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    pub(crate) commands: BTreeMap<CommandId, OpenCommand>,
    pub(crate) loops: BTreeMap<(Arc<str>, u32), LoopState>,
    pub(crate) held: BTreeMap<Arc<str>, Vec<WaitingToken>>,
}

impl UndoLog {
    /// Creates an undo log that records changes.
    pub(crate) fn recording() -> Self {
        Self { changes: Some(Vec::with_capacity(16)), placed: false }
    }

    /// Notes whether a value is stored only as a reference to its event.
    pub(crate) fn note(&mut self, source: &ValueSource) {
        self.placed |= matches!(source, ValueSource::Event { .. });
    }

    /// Notes that the last event must be read to know one of its values.
    pub(crate) fn note_placed(&mut self) {
        self.placed = true;
    }

    /// Like [`note`](Self::note), for each part of a slot.
    pub(crate) fn note_slot(&mut self, slot: &ValueSlot) {
        if let ValueSlot::Away(away) = slot {
            away.parts.iter().for_each(|part| self.note(&part.source));
        }
    }

    /// Returns `true` if a value was stored only as a reference since the last call.
    pub(crate) fn take_placed(&mut self) -> bool {
        std::mem::take(&mut self.placed)
    }

    pub(crate) fn push(&mut self, undo: impl FnOnce() -> UndoEntry) {
        if let Some(changes) = &mut self.changes {
            changes.push(undo());
        }
    }
}

/// Parts of the state that are copied before a decision.
pub(crate) struct CopiedState {
    version: Seq,
    last_event: Option<EventId>,
    status: Status,
    started: Option<Arc<ExecutionStart>>,
    started_at: Timestamp,
    updated_at: Timestamp,
    ended_at: Option<Timestamp>,
    workload: Option<ValueTable>,
    failing: Option<Arc<PendingFailure>>,
    deferred_failure: Option<Arc<PendingFailure>>,
    leaf: Option<Arc<str>>,
    leaf_before: Option<Arc<str>>,
    counts: StepCounts,
    current_step: Option<Arc<str>>,
    error: Option<String>,
    command_bytes: usize,
}

impl CopiedState {
    pub(crate) fn from_state(state: &Execution) -> Self {
        Self {
            version: state.version,
            last_event: state.last_event,
            status: state.status,
            started: state.started.clone(),
            started_at: state.started_at,
            updated_at: state.updated_at,
            ended_at: state.ended_at,
            // Only the start changes the workload, which is empty before it.
            workload: (state.status == Status::Absent).then(ValueTable::default),
            failing: state.failing.clone(),
            deferred_failure: state.deferred_failure.clone(),
            leaf: state.leaf.clone(),
            leaf_before: state.leaf_before.clone(),
            counts: state.counts,
            current_step: state.current_step.clone(),
            error: state.error.clone(),
            command_bytes: state.command_bytes,
        }
    }

    /// Restores the state that this copy was made of.
    pub(crate) fn restore(self, state: &mut Execution, trail: UndoLog) {
        for undo in trail.changes.into_iter().flatten().rev() {
            undo.apply(state);
        }
        state.version = self.version;
        state.last_event = self.last_event;
        state.status = self.status;
        state.started = self.started;
        state.started_at = self.started_at;
        state.updated_at = self.updated_at;
        state.ended_at = self.ended_at;
        if let Some(workload) = self.workload {
            state.workload = workload;
        }
        state.failing = self.failing;
        state.deferred_failure = self.deferred_failure;
        state.leaf = self.leaf;
        state.leaf_before = self.leaf_before;
        state.counts = self.counts;
        state.current_step = self.current_step;
        state.error = self.error;
        state.command_bytes = self.command_bytes;
    }
}

impl UndoEntry {
    fn apply(self, state: &mut Execution) {
        match self {
            Self::Generation(step, Some(before)) => {
                state.runs.insert(step, before);
            }
            Self::Generation(step, None) => {
                state.runs.remove(&step);
            }
            Self::Round(step, Some(before)) => {
                state.rounds.insert(step, before);
            }
            Self::Round(step, None) => {
                state.rounds.remove(&step);
            }
            Self::StepRun(step_run_key, Some(before)) => {
                state.running.insert(step_run_key, before);
            }
            Self::StepRun(step_run_key, None) => {
                state.running.remove(&step_run_key);
            }
            Self::Token(step) => {
                let tokens = state.waiting.entry(step.clone()).or_default();
                tokens.pop();
                if tokens.is_empty() {
                    state.waiting.remove(&step);
                }
            }
            Self::Tokens(step, used) => {
                state.waiting.entry(step).or_default().splice(..0, used);
            }
            Self::Command(command, Some(before)) => {
                state.commands.insert(command, *before);
            }
            Self::Command(command, None) => {
                state.commands.remove(&command);
            }
            Self::Result(step, before) => state.results.unset(&step, before),
            Self::Variable(name, before) => state.ctx.unset(&name, before),
            Self::Ended(outstanding) => {
                state.running = outstanding.running;
                state.waiting = outstanding.waiting;
                state.commands = outstanding.commands;
                state.loops = outstanding.loops;
                state.held = outstanding.held;
            }
            Self::Loop(step_run_key, Some(before)) => {
                state.loops.insert(step_run_key, *before);
            }
            Self::Loop(step_run_key, None) => {
                state.loops.remove(&step_run_key);
            }
            Self::InLoop(step_run_key, undo) => {
                if let Some(repeat) = state.loops.get_mut(&step_run_key) {
                    repeat.undo(undo);
                }
            }
            Self::Child(command, Some(before)) => {
                state.children.insert(command, before);
            }
            Self::Child(command, None) => {
                state.children.remove(&command);
            }
            Self::Sent => {
                state.sent.pop();
            }
            Self::Held(step, before) if before.is_empty() => {
                state.held.remove(&step);
            }
            Self::Held(step, before) => {
                state.held.insert(step, before);
            }
        }
    }
}
