//! State of one execution: a fold over its event log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use noetl_model::command::{DEFAULT_POOL, pool_of_path};
use noetl_model::event::{CommandSpec, ExecutionStart, ParkReason};
use noetl_model::trace::Trace;
use noetl_model::{CommandId, CommandState, EventId, ExecutionId, Seq, Timestamp};
use noetl_template::Names;

use crate::loops::LoopState;
use crate::values::{StoredFailure, StoredValue, ValueLimits, ValueTable, size_of};

/// Lifecycle status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No event is recorded.
    Absent,
    /// Not finished: a command is open, or a token waits for admission.
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    /// Returns `true` if the status is terminal.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Absent | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// A command that is not terminal.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCommand {
    /// Tool, settings, and input of the command, as recorded in `command.issued`.
    pub issued: Arc<CommandSpec>,
    /// Pending, claimed, or running.
    pub state: CommandState,
    pub worker: Option<Arc<str>>,
    /// Time the command entered its current state: issued, claimed, started, or parked.
    pub since: Timestamp,
    /// Reason the command is parked; `None` while it is pending or a worker holds it.
    pub(crate) parked: Option<ParkReason>,
    /// Tool result, if the worker reported it before the command's completion.
    pub(crate) answer: Option<StoredValue>,
    /// Approximate size of the settings and input, in bytes.
    pub(crate) bytes: usize,
}

impl OpenCommand {
    pub(crate) fn new(issued: Arc<CommandSpec>, since: Timestamp) -> Self {
        let values = issued.config.values().chain(issued.input.values());
        let bytes = values.map(size_of).sum();
        let state = CommandState::Pending;
        Self { issued, state, worker: None, since, parked: None, answer: None, bytes }
    }

    /// Returns the reason the command is parked, or `None` if it is not parked.
    pub fn parked(&self) -> Option<&ParkReason> {
        self.parked.as_ref()
    }
}

/// An active step run. Its command, if it has one, holds the rest of its state.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StepRun {
    pub(crate) data: Option<StoredValue>,
    /// Variables that the step run's commands set with `step.*`.
    pub(crate) locals: ValueTable,
}

/// A token that waits for admission to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingToken {
    pub(crate) from: Option<Arc<str>>,
    pub(crate) until: Timestamp,
}

/// An unhandled failure. The execution fails with it once its commands have ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingFailure {
    pub(crate) step: Arc<str>,
    pub(crate) failure: StoredFailure,
}

/// Numbers of step runs that completed and failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StepCounts {
    pub(crate) completed: u32,
    pub(crate) failed: u32,
}

/// State of an execution: everything that later decisions depend on.
///
/// A running execution has an open command, or a token that waits for admission. Loops, timers,
/// child executions, and callbacks that the execution waits for are part of the commands that
/// represent them.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    pub(crate) id: ExecutionId,
    pub(crate) version: Seq,
    /// ID of the event at `version`.
    pub(crate) last_event: Option<EventId>,
    pub(crate) status: Status,
    pub(crate) started: Option<Arc<ExecutionStart>>,
    pub(crate) started_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) workload: ValueTable,
    pub(crate) ctx: ValueTable,
    pub(crate) results: ValueTable,
    /// Number of runs of each step.
    pub(crate) runs: HashMap<Arc<str>, u32>,
    /// Round in which each step that joins `any` last ran.
    pub(crate) rounds: HashMap<Arc<str>, u32>,
    /// Active step runs, by step and run number.
    pub(crate) running: BTreeMap<(Arc<str>, u32), StepRun>,
    /// Join tokens that wait at each step, as the names of the steps they came from.
    pub(crate) waiting: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    pub(crate) commands: BTreeMap<CommandId, OpenCommand>,
    /// Active loops, by step and run number.
    pub(crate) loops: BTreeMap<(Arc<str>, u32), LoopState>,
    /// Tokens that wait for admission at each step.
    pub(crate) held: BTreeMap<Arc<str>, Vec<WaitingToken>>,
    /// Child executions of commands that wait for them. Entries of commands that stopped waiting
    /// remain.
    pub(crate) children: BTreeMap<CommandId, ExecutionId>,
    /// Child executions that this execution started without waiting for them.
    pub(crate) sent: Vec<ExecutionId>,
    pub(crate) failing: Option<Arc<PendingFailure>>,
    /// An unhandled failure that takes effect after all other work has ended.
    pub(crate) deferred_failure: Option<Arc<PendingFailure>>,
    /// Leaf step whose data becomes the execution's result if the execution ends now.
    pub(crate) leaf: Option<Arc<str>>,
    /// Leaf step before `leaf`, for the case that the last step only cleans up.
    pub(crate) leaf_before: Option<Arc<str>>,
    pub(crate) counts: StepCounts,
    pub(crate) current_step: Option<Arc<str>>,
    pub(crate) error: Option<String>,
    /// Approximate size of the settings and input of open commands, in bytes; bounds the cache.
    pub(crate) command_bytes: usize,
    /// Limits on the values stored inline in the state.
    pub(crate) limits: ValueLimits,
}

/// Fields of an execution shown in listings and on status pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionSummary {
    pub status: Status,
    /// Number of events in the event log.
    pub version: Seq,
    pub started_at: Timestamp,
    /// Time of the newest event.
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Failure message in one sentence; `None` unless the execution failed.
    pub error: Option<String>,
    /// Number of distinct steps entered.
    pub steps_entered: u32,
    /// Number of step runs that completed.
    pub steps_completed: u32,
    /// Number of step runs that failed.
    pub steps_failed: u32,
    /// Number of active step runs.
    pub steps_running: u32,
    /// Step that was entered last.
    pub current_step: Option<Arc<str>>,
}

impl Execution {
    /// Creates the state of an execution without events. The state stores large values as
    /// references.
    pub fn new(id: ExecutionId) -> Self {
        Self::with_value_limits(id, ValueLimits::default())
    }

    /// Creates the state of an execution without events that stores values inline up to `limits`.
    pub fn with_value_limits(id: ExecutionId, limits: ValueLimits) -> Self {
        Self {
            id,
            version: Seq::START,
            last_event: None,
            status: Status::Absent,
            started: None,
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            ended_at: None,
            workload: ValueTable::default(),
            ctx: ValueTable::default(),
            results: ValueTable::default(),
            runs: HashMap::new(),
            rounds: HashMap::new(),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            commands: BTreeMap::new(),
            loops: BTreeMap::new(),
            held: BTreeMap::new(),
            children: BTreeMap::new(),
            sent: Vec::new(),
            failing: None,
            deferred_failure: None,
            leaf: None,
            leaf_before: None,
            counts: StepCounts::default(),
            current_step: None,
            error: None,
            command_bytes: 0,
            limits,
        }
    }

    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// Returns the sequence number of the last folded event.
    pub fn version(&self) -> Seq {
        self.version
    }

    /// Returns the ID of the last folded event.
    pub fn last_event(&self) -> Option<EventId> {
        self.last_event
    }

    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the start of the execution, or `None` while it is absent.
    pub fn started(&self) -> Option<&Arc<ExecutionStart>> {
        self.started.as_ref()
    }

    /// Returns the worker pool for the execution's commands, or `None` for the default pool.
    pub(crate) fn pool(&self) -> Option<Arc<str>> {
        let started = self.started.as_ref()?;
        match started.pool.as_ref().filter(|pool| !pool.is_empty()) {
            Some(named) => Some(named.clone()).filter(|pool| **pool != *DEFAULT_POOL),
            None => pool_of_path(&started.path).map(Arc::from),
        }
    }

    /// Returns the trace that the execution's commands belong to.
    pub(crate) fn trace(&self) -> Option<Arc<Trace>> {
        let context = self.started.as_ref()?.trace.as_ref()?;
        Some(context.trace.clone())
    }

    /// Returns the commands that are not terminal, oldest first.
    pub fn open_commands(&self) -> impl Iterator<Item = (CommandId, &OpenCommand)> {
        self.commands.iter().map(|(id, command)| (*id, command))
    }

    /// Returns the command, or `None` if it is terminal or the execution never issued it.
    pub fn open_command(&self, id: CommandId) -> Option<&OpenCommand> {
        self.commands.get(&id)
    }

    /// Returns `true` if the execution has an unhandled failure and waits for open commands to end.
    pub fn is_failing(&self) -> bool {
        self.failing.is_some() && self.status == Status::Running
    }

    /// Returns the approximate size in memory, in bytes; bounds the cache.
    pub fn bytes(&self) -> usize {
        const BASE: usize = 2048;
        const PER_STEP: usize = 256;
        const PER_COMMAND: usize = 2048;
        const PER_ITEM: usize = 96;
        BASE + self.inline_bytes()
            + self.command_bytes
            + self.loops.values().map(|repeat| repeat.ends.len() * PER_ITEM).sum::<usize>()
            + self.runs.len() * PER_STEP
            + self.commands.len() * PER_COMMAND
    }

    /// Returns the fields shown in listings and on status pages.
    pub fn summary(&self) -> ExecutionSummary {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        ExecutionSummary {
            status: self.status,
            version: self.version,
            started_at: self.started_at,
            updated_at: self.updated_at,
            ended_at: self.ended_at,
            error: self.error.clone(),
            steps_entered: count(self.runs.len()),
            steps_completed: self.counts.completed,
            steps_failed: self.counts.failed,
            steps_running: count(self.running.len()),
            current_step: self.current_step.clone(),
        }
    }

    /// Returns the approximate size of the values stored inline, in bytes.
    pub(crate) fn inline_bytes(&self) -> usize {
        let loops = self.loops.values().map(|repeat| repeat.counters.bytes).sum::<usize>();
        let locals = self.running.values().map(|step_run| step_run.locals.bytes).sum::<usize>();
        self.workload.bytes + self.ctx.bytes + self.results.bytes + loops + locals
    }

    /// Returns the variables that the step run's commands set with `step.*`.
    pub(crate) fn locals(&self, step: &Arc<str>, run: u32) -> Arc<Names> {
        let step_run = self.running.get(&(step.clone(), run));
        step_run.map(|step_run| step_run.locals.names.clone()).unwrap_or_default()
    }

    pub(crate) fn last_run(&self, step: &str) -> u32 {
        self.runs.get(step).copied().unwrap_or(0)
    }
}
