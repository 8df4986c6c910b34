//! The compiled playbook: what the engine reads.
//!
//! Steps are addressed by [`StepIx`], their place in the document. Everything a template could say
//! is compiled; everything a name could refer to is resolved.

mod repeat;
mod split;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use repeat::{Cursor, FailureMode, Frame, FrameSize, Loop, LoopExec, LoopMode, Over};
pub use split::{Call, Segment, Split};

use crate::graph::Graph;
use crate::pipeline::{Pipeline, Rule};
use crate::template::{Guard, ValueTemplate};

/// A step's place in `workflow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepIx(pub u32);

impl StepIx {
    /// As an index into [`Playbook::steps`].
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("the document limit keeps step counts far below usize")
    }
}

#[derive(Debug)]
pub struct Playbook {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.path`, or the name.
    pub path: String,
    /// Input defaults, rendered once when an execution starts.
    pub workload: ValueTemplate,
    /// Variables the execution starts with, rendered after the workload (root key `vars`).
    pub vars: Vec<(String, ValueTemplate)>,
    /// The root key `spec`, which some documents use as data.
    pub spec: Option<serde_json::Value>,
    /// Where an execution begins.
    pub entry: StepIx,
    /// A step called `end` that no arc leads to; it runs once when everything else is done.
    pub implicit_end: Option<StepIx>,
    /// A step that runs once when all else is over, also after a failure
    /// (`executor.spec.final_step`).
    pub final_step: Option<StepIx>,
    /// Whether a step none of whose arcs matched fails (`executor.spec.no_next_is_error`).
    pub no_next_is_error: bool,
    /// How long an execution may take (`executor.spec.policy.limits.deadline_s`).
    pub deadline: Option<Duration>,
    /// Who is told when an execution fails or waits (`spec.notify`).
    pub notify: Option<Notify>,
    /// Credentials the document declares (`keychain`), by name.
    pub keychain: Vec<KeychainEntry>,
    /// All steps, in document order.
    pub steps: Vec<Step>,
    /// Which arcs close loops, and what a join waits for.
    pub graph: Graph,
    /// The label of the first task of each step that is a pipeline.
    pub first_tasks: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    pub(crate) by_name: HashMap<Arc<str>, StepIx>,
}

impl Playbook {
    /// The step at `ix`.
    pub fn step(&self, ix: StepIx) -> &Step {
        &self.steps[ix.index()]
    }

    /// The step called `name`.
    pub fn find(&self, name: &str) -> Option<StepIx> {
        self.by_name.get(name).copied()
    }
}

/// One node of the graph.
#[derive(Debug)]
pub struct Step {
    pub name: Arc<str>,
    pub work: Work,
    /// Runs its work once per item.
    pub repeat: Option<Loop>,
    /// A condition on the step itself (older form). When it does not hold, the step is passed over
    /// and its arcs are followed.
    pub when: Option<Guard>,
    /// Whether a token may start it.
    pub admit: Option<Admit>,
    /// How long a visit may take, enforced by a durable timer.
    pub timeout: Option<Duration>,
    /// The same, where it is known only when the step is entered. The shortest of all counts.
    pub limits: Vec<TimeLimit>,
    /// What an unhandled failure does to the branches beside it.
    pub failure: FailureMode,
    /// Assignments made when it completes, before its arcs are decided.
    pub set: Vec<Assignment>,
    pub router: Router,
    /// When tokens that wait at it start it.
    pub join: Join,
    /// Whether an unhandled failure of this step lets the branch go on (`spec.on_error`).
    pub on_error: OnError,
}

impl Step {
    /// Its tool, if it runs exactly one.
    pub fn tool(&self) -> Option<&Tool> {
        match &self.work {
            Work::Tool(tool) => Some(tool),
            Work::Own(own) => Some(&own.tool),
            Work::Route | Work::Pipeline(_) | Work::Split(_) => None,
        }
    }
}

/// How long something may take, by a template.
#[derive(Debug)]
pub struct TimeLimit {
    /// Where it stands in its step.
    pub key: &'static str,
    /// A number of seconds, or a text such as `30s`.
    pub value: ValueTemplate,
}

/// What a step runs.
#[derive(Debug)]
pub enum Work {
    /// Nothing: the step only routes.
    Route,
    /// One tool, rendered where it is decided and run by a worker.
    Tool(Tool),
    /// Tasks that one worker runs in a row, each rendered when its turn comes. A single tool with a
    /// policy or assignments of its own is a pipeline of one.
    Pipeline(Arc<Pipeline>),
    /// A pipeline that calls playbooks: the control plane runs it segment by segment.
    Split(Box<Split>),
    /// Something the control plane does itself, without a worker.
    Own(Box<Own>),
}

/// One call of a tool.
#[derive(Debug)]
pub struct Tool {
    /// Its kind, known to the registry of tool kinds.
    pub kind: Arc<str>,
    /// Its settings without `kind`, `name`, `input`, `set` and `spec`.
    pub config: ValueTemplate,
    /// Its named arguments, step-level defaults below the tool's own.
    pub input: ValueTemplate,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Fields picked out of its result.
    pub select: Vec<Selection>,
    /// Whether it may run again when its worker was lost (`idempotent: false` says no).
    pub idempotent: bool,
}

/// A field picked out of a result (`output_select`, `output.select`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The name it gets beside the result's own keys.
    pub name: Arc<str>,
    /// Keys and places in lists that lead to it.
    pub path: Vec<Arc<str>>,
}

/// Work of the control plane itself.
#[derive(Debug)]
pub struct Own {
    pub kind: OwnKind,
    /// Its settings and arguments.
    pub tool: Tool,
    /// How long it may take, when a template says so.
    pub limit: Option<TimeLimit>,
    /// What to do after it, by its outcome. `jump` cannot occur.
    pub rules: Vec<Rule>,
}

/// Tools that need no worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnKind {
    /// Another playbook.
    Playbook,
    /// Time.
    Wait,
    Approval,
}

/// Whether a token may start a step.
#[derive(Debug)]
pub struct Admit {
    /// The first that holds decides; without one the token is allowed.
    pub rules: Vec<(Guard, bool)>,
    /// A denied token waits for a change of variables, for so long; `None` ends it.
    pub wait: Option<Duration>,
}

/// Who is told of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// Told when it failed.
    pub on_failed: bool,
    /// Told when it waits for somebody.
    pub on_waiting: bool,
    /// Told when it completed.
    pub on_completed: bool,
    pub webhook: String,
}

/// A credential the document declares.
#[derive(Debug, Clone, PartialEq)]
pub struct KeychainEntry {
    /// The name after `keychain.`.
    pub name: Arc<str>,
    /// Which way it is resolved: `credential`, `static`, `bearer`, `secret_manager`, …
    pub kind: Arc<str>,
    /// The rest of its keys as written.
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// `target: value` of a `set` block.
#[derive(Debug)]
pub struct Assignment {
    /// Which scope is written.
    pub scope: SetScope,
    /// The path below that scope, at least one name.
    pub path: Vec<String>,
    pub value: ValueTemplate,
}

impl Assignment {
    /// What is written to, as it is written down: `ctx.a.b`.
    pub fn target(&self) -> String {
        format!("{}.{}", self.scope.as_str(), self.path.join("."))
    }
}

/// Where an assignment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetScope {
    /// Durable variables of the execution.
    Ctx,
    /// Names that this visit's arcs can read.
    Step,
    /// Names of one iteration.
    Iter,
}

impl SetScope {
    /// The name it is written with.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ctx => "ctx",
            Self::Step => "step",
            Self::Iter => "iter",
        }
    }
}

/// A step's outgoing arcs.
#[derive(Debug, Default)]
pub struct Router {
    /// How many of them may be taken.
    pub mode: Mode,
    /// What happens when none matches.
    pub on_no_match: OnNoMatch,
    /// The arcs in document order; none for a leaf.
    pub arcs: Vec<Arrow>,
}

/// How many arcs may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The first that matches.
    #[default]
    Exclusive,
    Inclusive,
}

/// What happens when no arc matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNoMatch {
    #[default]
    End,
    Fail,
}

#[derive(Debug)]
pub struct Arrow {
    /// The step it leads to.
    pub to: StepIx,
    /// When it is taken.
    pub when: Guard,
    /// Assignments made when it is taken.
    pub set: Vec<Assignment>,
    /// Whether it is considered after a failure: `on: error`, or a guard that speaks of failure.
    pub on_failure: bool,
    /// Whether it is considered after success: not for `on: error`.
    pub on_success: bool,
}

/// When tokens that wait at a step start it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Once, when no other unfinished work can still reach it in this round.
    #[default]
    All,
    /// Once per token.
    Each,
    /// With the first token of a round; the others are swallowed.
    Any,
}

/// What an unhandled failure of a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Fail,
    /// The step counts as done, its error visible as `output.error`.
    Continue,
}
