//! The state of one execution: a fold over its log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use noetl_model::command::{DEFAULT_POOL, pool_of_path};
use noetl_model::event::{Issued, Parked, Started};
use noetl_model::trace::Trace;
use noetl_model::{CommandId, CommandState, EventId, ExecutionId, Seq, Timestamp};
use noetl_playbook::template::Names;

use crate::repeat::Repeat;
use crate::values::{Kept, KeptFailure, Limits, Values, size_of};

/// How an execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing was recorded yet.
    Absent,
    /// Not finished: a command is outstanding.
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    /// Whether nothing can move it any more.
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
    /// What was handed out.
    pub issued: Arc<Issued>,
    /// Pending, claimed or running.
    pub state: CommandState,
    pub worker: Option<Arc<str>>,
    /// When it came to stand as it does: was issued, taken, begun or parked.
    pub since: Timestamp,
    /// What it waits for, when no worker holds it.
    pub(crate) parked: Option<Parked>,
    /// What its tool answered, when that came before the command's end.
    pub(crate) answer: Option<Kept>,
    /// A rough size of its settings and input.
    pub(crate) bytes: usize,
}

impl OpenCommand {
    /// A command that was just handed out.
    pub(crate) fn new(issued: Arc<Issued>, since: Timestamp) -> Self {
        let given = issued.config.values().chain(issued.input.values());
        let bytes = given.map(size_of).sum();
        let state = CommandState::Pending;
        Self { issued, state, worker: None, since, parked: None, answer: None, bytes }
    }

    /// What it waits for, when no worker holds it.
    pub fn parked(&self) -> Option<&Parked> {
        self.parked.as_ref()
    }
}

/// A visit that is under way. Its command, if it has one, knows the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Visit {
    pub(crate) data: Option<Kept>,
    /// What its commands set with `step.*`.
    pub(crate) locals: Values,
}

/// A token that waits to be admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldToken {
    pub(crate) from: Option<Arc<str>>,
    pub(crate) until: Timestamp,
}

/// A failure that nobody handled; the execution ends with it once its commands have ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failing {
    pub(crate) step: Arc<str>,
    pub(crate) failure: KeptFailure,
}

/// How many visits began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) completed: u32,
    pub(crate) failed: u32,
}

/// Everything later decisions depend on.
///
/// An execution that is running has an open command, or a token that waits to be admitted. What
/// loops, timers, children and callbacks are waited for is known by the commands they stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    pub(crate) id: ExecutionId,
    pub(crate) version: Seq,
    /// The event at `version`.
    pub(crate) last_event: Option<EventId>,
    pub(crate) status: Status,
    pub(crate) started: Option<Arc<Started>>,
    pub(crate) started_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) workload: Values,
    pub(crate) ctx: Values,
    pub(crate) results: Values,
    /// How often each step was entered.
    pub(crate) generations: HashMap<Arc<str>, u32>,
    /// The round in which a step that joins `any` last ran.
    pub(crate) rounds: HashMap<Arc<str>, u32>,
    /// Visits under way, by step and generation.
    pub(crate) running: BTreeMap<(Arc<str>, u32), Visit>,
    /// Tokens that wait at a step, each with the step it came from.
    pub(crate) waiting: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    pub(crate) commands: BTreeMap<CommandId, OpenCommand>,
    /// Loops under way, by the visit they belong to.
    pub(crate) loops: BTreeMap<(Arc<str>, u32), Repeat>,
    /// Tokens that wait to be admitted at a step.
    pub(crate) held: BTreeMap<Arc<str>, Vec<HeldToken>>,
    /// Executions that commands wait for. Those of commands that gave up stay.
    pub(crate) children: BTreeMap<CommandId, ExecutionId>,
    /// Executions it started and does not wait for.
    pub(crate) sent: Vec<ExecutionId>,
    pub(crate) failing: Option<Arc<Failing>>,
    /// A failure that nobody handled and that lets everything else end first.
    pub(crate) doomed: Option<Arc<Failing>>,
    /// The step whose data is the execution's result if it ends now.
    pub(crate) leaf: Option<Arc<str>>,
    /// The one before it, in case the last step only cleans up.
    pub(crate) leaf_before: Option<Arc<str>>,
    pub(crate) counts: Counts,
    pub(crate) current_step: Option<Arc<str>>,
    pub(crate) error: Option<String>,
    /// A rough size of what open commands were given, for the cache's bound.
    pub(crate) command_bytes: usize,
    /// How much of its values it holds.
    pub(crate) limits: Limits,
}

/// What lists and status pages show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub status: Status,
    /// The number of events in its log.
    pub version: Seq,
    pub started_at: Timestamp,
    /// When its newest event was decided.
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Why it failed, in one sentence.
    pub error: Option<String>,
    /// Steps entered, counting each name once.
    pub steps_entered: u32,
    /// Visits that ended well.
    pub steps_completed: u32,
    /// Visits that ended badly.
    pub steps_failed: u32,
    /// Visits under way.
    pub steps_running: u32,
    /// The step that was entered last.
    pub current_step: Option<Arc<str>>,
}

impl Execution {
    /// An execution of which nothing is recorded yet. Large values will be known by their places.
    pub fn absent(id: ExecutionId) -> Self {
        Self::within(id, Limits::default())
    }

    /// The same, holding as much of its values as `limits` say.
    pub fn within(id: ExecutionId, limits: Limits) -> Self {
        Self {
            id,
            version: Seq::START,
            last_event: None,
            status: Status::Absent,
            started: None,
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            ended_at: None,
            workload: Values::default(),
            ctx: Values::default(),
            results: Values::default(),
            generations: HashMap::new(),
            rounds: HashMap::new(),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            commands: BTreeMap::new(),
            loops: BTreeMap::new(),
            held: BTreeMap::new(),
            children: BTreeMap::new(),
            sent: Vec::new(),
            failing: None,
            doomed: None,
            leaf: None,
            leaf_before: None,
            counts: Counts::default(),
            current_step: None,
            error: None,
            command_bytes: 0,
            limits,
        }
    }

    /// Which execution it is.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// The place of the last event folded in.
    pub fn version(&self) -> Seq {
        self.version
    }

    /// The last event folded in.
    pub fn last_event(&self) -> Option<EventId> {
        self.last_event
    }

    pub fn status(&self) -> Status {
        self.status
    }

    /// How it began; `None` while it is absent.
    pub fn started(&self) -> Option<&Arc<Started>> {
        self.started.as_ref()
    }

    /// The pool whose workers take its commands; the default one when `None`.
    pub(crate) fn pool(&self) -> Option<Arc<str>> {
        let started = self.started.as_ref()?;
        match started.pool.as_ref().filter(|pool| !pool.is_empty()) {
            Some(named) => Some(named.clone()).filter(|pool| **pool != *DEFAULT_POOL),
            None => pool_of_path(&started.path).map(Arc::from),
        }
    }

    /// The trace its commands belong to.
    pub(crate) fn trace(&self) -> Option<Arc<Trace>> {
        let context = self.started.as_ref()?.trace.as_ref()?;
        Some(context.trace.clone())
    }

    /// Commands that are not terminal, oldest first.
    pub fn open_commands(&self) -> impl Iterator<Item = (CommandId, &OpenCommand)> {
        self.commands.iter().map(|(id, command)| (*id, command))
    }

    /// The command, unless it is terminal or was never issued here.
    pub fn open_command(&self, id: CommandId) -> Option<&OpenCommand> {
        self.commands.get(&id)
    }

    /// Whether a failure that nobody handled waits for running commands to end.
    pub fn is_failing(&self) -> bool {
        self.failing.is_some() && self.status == Status::Running
    }

    /// A rough size in memory, for a cache's bound.
    pub fn bytes(&self) -> usize {
        const BASE: usize = 2048;
        const PER_STEP: usize = 256;
        const PER_COMMAND: usize = 2048;
        const PER_ITEM: usize = 96;
        BASE + self.held_bytes()
            + self.command_bytes
            + self.loops.values().map(|repeat| repeat.ends.len() * PER_ITEM).sum::<usize>()
            + self.generations.len() * PER_STEP
            + self.commands.len() * PER_COMMAND
    }

    /// What lists and status pages show.
    pub fn summary(&self) -> Summary {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Summary {
            status: self.status,
            version: self.version,
            started_at: self.started_at,
            updated_at: self.updated_at,
            ended_at: self.ended_at,
            error: self.error.clone(),
            steps_entered: count(self.generations.len()),
            steps_completed: self.counts.completed,
            steps_failed: self.counts.failed,
            steps_running: count(self.running.len()),
            current_step: self.current_step.clone(),
        }
    }

    /// A rough size of the values that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        let loops = self.loops.values().map(|repeat| repeat.counters.bytes).sum::<usize>();
        let locals = self.running.values().map(|visit| visit.locals.bytes).sum::<usize>();
        self.workload.bytes + self.ctx.bytes + self.results.bytes + loops + locals
    }

    /// What the commands of a visit set with `step.*`.
    pub(crate) fn locals(&self, step: &Arc<str>, generation: u32) -> Arc<Names> {
        let visit = self.running.get(&(step.clone(), generation));
        visit.map(|visit| visit.locals.names.clone()).unwrap_or_default()
    }

    pub(crate) fn generation(&self, step: &str) -> u32 {
        self.generations.get(step).copied().unwrap_or(0)
    }
}
