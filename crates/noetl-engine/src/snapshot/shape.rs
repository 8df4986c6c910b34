//! Serialized form of a state. Its field names are independent of the state's, so that renaming a
//! field of the state leaves snapshots readable; an incompatible change needs a new version.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::{ExecutionStart, ForkedFrom};
use noetl_model::trace::{self, TraceContext};
use noetl_model::{CatalogId, CommandId, EventId, ExecutionId, Failure, Map, Seq, Timestamp};
use serde::{Deserialize, Serialize};

mod command;
mod loops;
mod slot;

use self::command::CommandShape;
use self::slot::SlotShape;
use super::{FIRST, SnapshotError, VERSION};
use crate::execution::{
    Execution, OpenCommand, PendingFailure, Status, StepCounts, StepRun, WaitingToken,
};
use crate::values::{StoredFailure, StoredValue, ValueLimits, ValueTable};

#[derive(Serialize, Deserialize)]
pub(super) struct StateShape {
    v: u32,
    id: i64,
    version: u64,
    last_event: Option<i64>,
    status: String,
    started: Option<StartShape>,
    started_at: i64,
    updated_at: i64,
    ended_at: Option<i64>,
    workload: Vec<(Arc<str>, SlotShape)>,
    ctx: Vec<(Arc<str>, SlotShape)>,
    results: Vec<(Arc<str>, SlotShape)>,
    #[serde(rename = "generations")]
    runs: BTreeMap<Arc<str>, u32>,
    rounds: BTreeMap<Arc<str>, u32>,
    running: Vec<(Arc<str>, u32, Option<SlotShape>)>,
    waiting: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    commands: Vec<CommandShape>,
    failing: Option<Fails>,
    leaf: Option<Arc<str>>,
    completed: u32,
    failed: u32,
    current_step: Option<Arc<str>>,
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    loops: Vec<loops::LoopShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    held: Vec<(Arc<str>, Option<Arc<str>>, i64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<(i64, i64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sent: Vec<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "doomed")]
    deferred_failure: Option<Fails>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaf_before: Option<Arc<str>>,
    /// Variables that active step runs set for themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locals: Vec<Locals>,
}

/// Variables of a step run: step, run number, and named values.
type Locals = (Arc<str>, u32, Vec<(Arc<str>, SlotShape)>);

#[derive(Serialize, Deserialize)]
struct StartShape {
    catalog: i64,
    path: Arc<str>,
    version: u32,
    parent: Option<i64>,
    pool: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_command: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    returns: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    depth: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked: Option<ForkedFrom>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "trace::kept")]
    trace: Option<TraceContext>,
}

#[derive(Serialize, Deserialize)]
struct Fails {
    step: Arc<str>,
    failure: Cause,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Cause {
    Held(Failure),
    Event { seq: u64, bytes: u64 },
}

impl StateShape {
    pub(super) fn from_state(state: &Execution) -> Self {
        let copied = |map: &std::collections::HashMap<Arc<str>, u32>| {
            map.iter().map(|(name, n)| (name.clone(), *n)).collect()
        };
        let running = |((step, run), step_run): (&(Arc<str>, u32), &StepRun)| {
            (
                step.clone(),
                *run,
                step_run.data.as_ref().map(|data| SlotShape::from_slot(&data.slot)),
            )
        };
        Self {
            v: version_of(state),
            id: state.id.get(),
            version: state.version.0,
            last_event: state.last_event.map(EventId::get),
            status: status_text(state.status).to_owned(),
            started: state.started.as_deref().map(StartShape::from_start),
            started_at: state.started_at.as_micros(),
            updated_at: state.updated_at.as_micros(),
            ended_at: state.ended_at.map(Timestamp::as_micros),
            workload: named(&state.workload),
            ctx: named(&state.ctx),
            results: named(&state.results),
            runs: copied(&state.runs),
            rounds: copied(&state.rounds),
            running: state.running.iter().map(running).collect(),
            waiting: state.waiting.clone(),
            commands: state
                .commands
                .iter()
                .map(|(id, open)| CommandShape::from_command(*id, open))
                .collect(),
            failing: state.failing.as_deref().map(Fails::from_failure),
            leaf: state.leaf.clone(),
            completed: state.counts.completed,
            failed: state.counts.failed,
            current_step: state.current_step.clone(),
            error: state.error.clone(),
            loops: state.loops.iter().map(loops::LoopShape::from_loop).collect(),
            held: held(state),
            children: state.children.iter().map(|(id, child)| (id.get(), child.get())).collect(),
            sent: state.sent.iter().map(|child| child.get()).collect(),
            deferred_failure: state.deferred_failure.as_deref().map(Fails::from_failure),
            leaf_before: state.leaf_before.clone(),
            locals: locals(state),
        }
    }

    pub(super) fn version_written(&self) -> u32 {
        self.v
    }

    pub(super) fn restored(
        self,
        id: ExecutionId,
        limits: ValueLimits,
    ) -> Result<Execution, SnapshotError> {
        if self.id != id.get() {
            return Err(SnapshotError::OtherExecution(ExecutionId::new(self.id)));
        }
        let mut state = Execution::with_value_limits(id, limits);
        state.version = Seq(self.version);
        state.last_event = self.last_event.map(EventId::new);
        state.status = status_of(&self.status)?;
        state.started = self.started.map(|start| Arc::new(start.restored()));
        state.started_at = Timestamp::from_micros(self.started_at);
        state.updated_at = Timestamp::from_micros(self.updated_at);
        state.ended_at = self.ended_at.map(Timestamp::from_micros);
        state.workload = values(self.workload)?;
        state.ctx = values(self.ctx)?;
        state.results = values(self.results)?;
        state.runs = self.runs.into_iter().collect();
        state.rounds = self.rounds.into_iter().collect();
        for (step, run, data) in self.running {
            let data = data.map(SlotShape::into_stored).transpose()?;
            state.running.insert((step, run), StepRun { data, locals: ValueTable::default() });
        }
        for (step, run, locals) in self.locals {
            if let Some(step_run) = state.running.get_mut(&(step, run)) {
                step_run.locals = values(locals)?;
            }
        }
        state.waiting = self.waiting;
        for command in self.commands {
            let (id, open) = command.restored(state.trace())?;
            state.command_bytes += open.bytes;
            state.commands.insert(id, open);
        }
        state.failing = self.failing.map(|failing| Arc::new(failing.restored()));
        state.leaf = self.leaf;
        state.counts = StepCounts { completed: self.completed, failed: self.failed };
        state.current_step = self.current_step;
        state.error = self.error;
        for repeat in self.loops {
            let (step_run_key, repeat) = repeat.restored()?;
            state.loops.insert(step_run_key, repeat);
        }
        for (step, from, until) in self.held {
            let token = WaitingToken { from, until: Timestamp::from_micros(until) };
            state.held.entry(step).or_default().push(token);
        }
        let child = |(id, child)| (CommandId::new(id), ExecutionId::new(child));
        state.children = self.children.into_iter().map(child).collect();
        state.sent = self.sent.into_iter().map(ExecutionId::new).collect();
        state.deferred_failure =
            self.deferred_failure.map(|deferred_failure| Arc::new(deferred_failure.restored()));
        state.leaf_before = self.leaf_before;
        Ok(state)
    }
}

/// Returns the lowest snapshot version that can represent a state.
fn version_of(state: &Execution) -> u32 {
    let is_new = |open: &OpenCommand| {
        open.parked.is_some() || open.issued.item.is_some() || open.issued.scope.is_some()
    };
    let is_plain = state.loops.is_empty()
        && state.held.is_empty()
        && state.children.is_empty()
        && state.sent.is_empty()
        && state.deferred_failure.is_none()
        && state.running.values().all(|step_run| step_run.locals.names.is_empty())
        && !state.commands.values().any(is_new);
    if is_plain { FIRST } else { VERSION }
}

fn held(state: &Execution) -> Vec<(Arc<str>, Option<Arc<str>>, i64)> {
    let tokens = state.held.iter().flat_map(|(step, tokens)| {
        tokens.iter().map(|token| (step.clone(), token.from.clone(), token.until.as_micros()))
    });
    tokens.collect()
}

fn locals(state: &Execution) -> Vec<Locals> {
    let with_locals =
        state.running.iter().filter(|(_, step_run)| !step_run.locals.names.is_empty());
    with_locals.map(|((step, n), step_run)| (step.clone(), *n, named(&step_run.locals))).collect()
}

fn yes() -> bool {
    true
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

fn is_true(answer: &bool) -> bool {
    *answer
}

fn named(values: &ValueTable) -> Vec<(Arc<str>, SlotShape)> {
    values.names.iter().map(|(name, slot)| (name.clone(), SlotShape::from_slot(slot))).collect()
}

fn values(named: Vec<(Arc<str>, SlotShape)>) -> Result<ValueTable, SnapshotError> {
    let mut values = ValueTable::default();
    for (name, kind) in named {
        let StoredValue { slot, bytes } = kind.into_stored()?;
        values.set(name, slot, bytes);
    }
    Ok(values)
}

impl StartShape {
    fn from_start(started: &ExecutionStart) -> Self {
        Self {
            catalog: started.catalog.get(),
            path: started.path.clone(),
            version: started.version,
            parent: started.parent.map(ExecutionId::get),
            pool: started.pool.clone(),
            parent_command: started.parent_command.map(CommandId::get),
            returns: started.returns.clone(),
            depth: started.depth,
            deadline: started.deadline.map(Timestamp::as_micros),
            forked: started.forked.clone(),
            trace: started.trace.clone(),
        }
    }

    fn restored(self) -> ExecutionStart {
        ExecutionStart {
            catalog: CatalogId::new(self.catalog),
            path: self.path,
            version: self.version,
            workload: Map::new(),
            parent: self.parent.map(ExecutionId::new),
            pool: self.pool,
            parent_command: self.parent_command.map(CommandId::new),
            returns: self.returns,
            depth: self.depth,
            deadline: self.deadline.map(Timestamp::from_micros),
            forked: self.forked,
            trace: self.trace,
        }
    }
}

impl Fails {
    fn from_failure(failing: &PendingFailure) -> Self {
        let failure = match &failing.failure {
            StoredFailure::Held(failure) => Cause::Held(failure.clone()),
            StoredFailure::At { seq, bytes } => Cause::Event { seq: seq.0, bytes: *bytes },
        };
        Self { step: failing.step.clone(), failure }
    }

    fn restored(self) -> PendingFailure {
        let failure = match self.failure {
            Cause::Held(failure) => StoredFailure::Held(failure),
            Cause::Event { seq, bytes } => StoredFailure::At { seq: Seq(seq), bytes },
        };
        PendingFailure { step: self.step, failure }
    }
}

const STATUSES: [(Status, &str); 5] = [
    (Status::Absent, "absent"),
    (Status::Running, "running"),
    (Status::Completed, "completed"),
    (Status::Failed, "failed"),
    (Status::Cancelled, "cancelled"),
];

fn status_text(status: Status) -> &'static str {
    let known_status = STATUSES.iter().find(|(known, _)| *known == status);
    known_status.map_or("absent", |(_, text)| *text)
}

fn status_of(text: &str) -> Result<Status, SnapshotError> {
    let known_status = STATUSES.iter().find(|(_, known)| *known == text);
    let unknown = || SnapshotError::Impossible(format!("the status {text}"));
    known_status.map(|(status, _)| *status).ok_or_else(unknown)
}
