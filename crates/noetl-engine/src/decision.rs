//! The outcome of a decision: the events to append, and everything they imply.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::CommandSpec;
use noetl_model::trace::Span;
use noetl_model::{CommandChange, CommandId, Event, EventId, Timestamp};
use noetl_template::{Entropy, ValueRef};

use crate::effects::Effect;
use crate::execution::{Execution, ExecutionSummary, Status};
use crate::loaded::DecisionValues;
use crate::timers::{Timer, TimerKind};

/// Outcome of one input, or of several inputs of one execution that are committed together.
///
/// The caller commits events, command changes, timers, blob references, and the summary in one
/// transaction, and performs the effects and exports the spans once it is durable.
#[derive(Debug, Clone)]
pub struct Decision {
    /// Events to append, in order. Empty if the input changes nothing.
    pub events: Vec<Arc<Event>>,
    /// Net changes of command rows.
    pub commands: Vec<CommandChange>,
    /// Timers to store, and messages to other executions.
    pub timers: Vec<Timer>,
    pub effects: Vec<Effect>,
    /// Spans that end with the events. Empty if [`DecisionEnv::traced`] is `false` or the trace is
    /// not sampled.
    pub spans: Vec<Span>,
    /// Digests of blobs that the events refer to.
    pub blobs: Vec<Arc<str>>,
    /// The execution after the events.
    pub summary: ExecutionSummary,
}

impl Decision {
    /// Returns a decision without events.
    pub fn none(state: &Execution) -> Self {
        Self {
            events: Vec::new(),
            commands: Vec::new(),
            timers: Vec::new(),
            effects: Vec::new(),
            spans: Vec::new(),
            blobs: Vec::new(),
            summary: state.summary(),
        }
    }

    /// Adds a later decision on the same execution. The result is their net change: a command that
    /// is issued and claimed in one append is not dispatched, and an execution that ended abandons
    /// nothing.
    pub fn merge(&mut self, later: Self) {
        let Self { events, commands, timers, effects, spans, blobs, summary } = later;
        self.events.extend(events);
        for change in commands {
            self.change_command(change);
        }
        self.timers.extend(timers);
        self.effects.extend(effects);
        self.spans.extend(spans);
        self.blobs.extend(blobs);
        self.summary = summary;
        if self.summary.status.is_final() {
            self.timers.retain(|timer| timer.kind != TimerKind::Abandon);
        }
    }

    /// Adds a change of a command row, and withdraws the dispatch of a command that moved on in the
    /// append that issues it.
    pub(crate) fn change_command(&mut self, change: CommandChange) {
        let moved = match &change {
            CommandChange::Move { id, .. } => Some(*id),
            CommandChange::Insert(_) | CommandChange::Release { .. } => None,
        };
        // Only commands that this append issues are dispatched.
        if change.add_to(&mut self.commands)
            && let Some(command) = moved
        {
            let dispatch = Effect::Dispatch { command };
            if let Some(index) = self.effects.iter().rposition(|effect| *effect == dispatch) {
                self.effects.remove(index);
            }
        }
    }
}

/// Reason the engine rejects an input. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The execution has no events.
    #[error("execution not found")]
    NotFound,
    #[error("the execution began before")]
    AlreadyStarted,
    #[error("the execution is {0:?} already")]
    AlreadyFinished(Status),
    /// The command is terminal, or does not belong to this execution.
    #[error("the command is over")]
    CommandFinished,
    /// Another worker holds the command.
    #[error("the command was claimed by {0}")]
    ClaimedBy(Arc<str>),
    /// The command waits for no answer, or for an answer with a different token.
    #[error("command does not wait for this answer")]
    NotAwaited,
    /// A template of the workload failed to render.
    #[error("{0}")]
    Workload(String),
    /// The decision depends on values that are not in memory. Load them into [`DecisionEnv::loaded`] and
    /// retry.
    #[error("{} values have to be loaded first", .0.len())]
    Need(Vec<ValueRef>),
}

/// Function that selects the worker that claims a command.
pub type ClaimFor<'a> = dyn FnMut(CommandId, &Arc<CommandSpec>) -> Option<Arc<str>> + 'a;

/// Inputs of a decision that come from outside the state: time, IDs, entropy, and limits.
pub struct DecisionEnv<'a> {
    /// Current time; recorded as the time of the new events.
    pub now: Timestamp,
    /// Mints event IDs, each larger than the previous one.
    pub ids: &'a mut dyn FnMut() -> EventId,
    /// Source of randomness for `uuid4()`.
    pub entropy: Entropy,
    /// Variables that templates see as `env`.
    pub env: Arc<BTreeMap<String, String>>,
    /// Values that the caller loaded because the state has only references to them.
    pub loaded: DecisionValues,
    pub caps: ExecutionLimits,
    /// Returns `true` for the kinds of notification that the playbook sends to someone.
    pub notify: &'a dyn Fn(&str) -> bool,
    /// Whether to compute the spans that end with the decision.
    pub traced: bool,
    /// Returns the worker that claims a command that the decision issued, or `None` to leave it
    /// pending. Called at most once per command, only if the decision succeeds.
    pub claim_for: &'a mut ClaimFor<'a>,
}

/// Limits of one execution, so that a mistake in a playbook cannot exhaust shared resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionLimits {
    /// Maximum number of items of one loop. Default 100,000.
    pub loop_items: u32,
    /// Maximum number of items of one loop in flight if the playbook does not set it. Default 64.
    pub in_flight: u32,
    /// Maximum nesting depth of child executions. Default 32.
    pub depth: u32,
    /// Maximum number of events of one execution. Default 10,000,000. At the limit, a running
    /// execution fails, and a finished one rejects further reports.
    pub events: u64,
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        Self { loop_items: 100_000, in_flight: 64, depth: 32, events: 10_000_000 }
    }
}
