//! The compiled playbook, as the engine reads it.
//!
//! Steps are addressed by [`StepIx`], their index in the document. All templates are compiled, and
//! all names are resolved.

mod loops;
mod split;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use noetl_template::{Guard, ValueTemplate};

pub use loops::{
    Cursor, FailureMode, FrameSize, FrameSpec, LoopExec, LoopMode, LoopSource, LoopSpec,
};
pub use split::{PlaybookCall, Segment, Split};

use crate::assignment::Assignment;
use crate::graph::{Graph, StepIx};
use crate::pipeline::{Pipeline, PolicyRule};
use crate::tool::Tool;

#[derive(Debug)]
pub struct Playbook {
    /// Value of the key `metadata.name`.
    pub name: String,
    /// `metadata.path`, or the name if it is missing.
    pub path: String,
    /// Input defaults, rendered once when an execution starts.
    pub workload: ValueTemplate,
    /// Initial variables of the execution, rendered after the workload (root key `vars`).
    pub vars: Vec<(String, ValueTemplate)>,
    /// Root key `spec`, which some documents use as data.
    pub spec: Option<serde_json::Value>,
    /// First step of an execution.
    pub entry: StepIx,
    /// Step called `end` that no arc leads to. It runs once, after all other steps are done.
    pub implicit_end: Option<StepIx>,
    /// Step that runs once after all other steps have ended, also after a failure
    /// (`executor.spec.final_step`).
    pub final_step: Option<StepIx>,
    /// Whether a step fails if none of its arcs matches (`executor.spec.no_next_is_error`).
    pub no_next_is_error: bool,
    /// Time limit of an execution (`executor.spec.policy.limits.deadline_s`).
    pub deadline: Option<Duration>,
    pub notify: Option<NotifySpec>,
    /// Credentials declared by the document (`keychain`).
    pub keychain: Vec<KeychainEntry>,
    /// All steps, in document order.
    pub steps: Vec<Step>,
    /// Step graph: back arcs, and the steps that a join waits for.
    pub graph: Graph,
    /// Label of the first task of each step that is a pipeline, by step name.
    pub first_tasks: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    pub(crate) by_name: HashMap<Arc<str>, StepIx>,
}

impl Playbook {
    /// Returns the step at `ix`.
    pub fn step(&self, ix: StepIx) -> &Step {
        &self.steps[ix.index()]
    }

    /// Returns the index of the step called `name`.
    pub fn find(&self, name: &str) -> Option<StepIx> {
        self.by_name.get(name).copied()
    }
}

/// A step: node of the workflow graph.
#[derive(Debug)]
pub struct Step {
    pub name: Arc<str>,
    pub work: StepWork,
    /// Loop that runs the work once per item.
    pub repeat: Option<LoopSpec>,
    /// Condition on the step itself (deprecated form). If it is false, the step is skipped and its
    /// arcs are followed.
    pub when: Option<Guard>,
    /// Rules that decide whether a token may start the step. `None` admits every token.
    pub admit: Option<AdmissionPolicy>,
    /// Time limit of a step run, enforced by a durable timer.
    pub timeout: Option<Duration>,
    /// Templated time limits of a step run, rendered on entry to the step. The shortest limit
    /// applies.
    pub limits: Vec<TimeLimit>,
    /// Effect of an unhandled failure on parallel branches.
    pub failure: FailureMode,
    /// Assignments applied when the step completes, before its arcs are evaluated.
    pub set: Vec<Assignment>,
    pub router: Router,
    /// Rule by which waiting join tokens start the step.
    pub join: JoinRule,
    /// Whether the branch continues after an unhandled failure of this step (`spec.on_error`).
    pub on_error: OnError,
}

impl Step {
    /// Returns the step's tool, if it runs exactly one.
    pub fn tool(&self) -> Option<&Tool> {
        match &self.work {
            StepWork::Tool(tool) => Some(tool),
            StepWork::Own(own) => Some(&own.tool),
            StepWork::Route | StepWork::Pipeline(_) | StepWork::Split(_) => None,
        }
    }
}

/// Time limit given by a template.
#[derive(Debug)]
pub struct TimeLimit {
    /// Key path of the limit within its step, for messages.
    pub key: &'static str,
    /// Number of seconds, or a text such as `30s`.
    pub value: ValueTemplate,
}

#[derive(Debug)]
pub enum StepWork {
    /// No work: the step only routes.
    Route,
    /// A single tool, rendered by the engine and run by a worker.
    Tool(Tool),
    /// Tasks that a single worker runs in sequence, each rendered right before it runs. A single
    /// tool with a policy or assignments of its own is a pipeline of one task.
    Pipeline(Arc<Pipeline>),
    /// A pipeline that calls playbooks. The control plane runs it segment by segment.
    Split(Box<Split>),
    /// A control-plane tool, run without a worker.
    Own(Box<ControlTool>),
}

/// A control-plane tool of a step.
#[derive(Debug)]
pub struct ControlTool {
    pub kind: ControlToolKind,
    /// Settings and arguments of the tool.
    pub tool: Tool,
    /// Time limit, if a template determines it.
    pub limit: Option<TimeLimit>,
    /// Policy rules, evaluated after the tool ends. `jump` cannot occur.
    pub rules: Vec<PolicyRule>,
}

/// Kinds of control-plane tools, which need no worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlToolKind {
    /// Runs another playbook as a child execution.
    Playbook,
    /// Sleeps for a duration or until a time.
    Wait,
    Approval,
}

/// Admission policy of a step.
#[derive(Debug)]
pub struct AdmissionPolicy {
    /// Conditions and whether they admit. The first true condition decides; without one, the token
    /// is admitted.
    pub rules: Vec<(Guard, bool)>,
    /// Maximum time that a denied token waits for a change of variables. `None` discards it at
    /// once.
    pub wait: Option<Duration>,
}

/// Notification settings of a playbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifySpec {
    /// Whether to notify when an execution fails.
    pub on_failed: bool,
    /// Whether to notify when an execution waits for a person.
    pub on_waiting: bool,
    /// Whether to notify when an execution completes.
    pub on_completed: bool,
    pub webhook: String,
}

/// A credential declared by the document.
#[derive(Debug, Clone, PartialEq)]
pub struct KeychainEntry {
    /// Name after `keychain.` in templates.
    pub name: Arc<str>,
    /// Resolution method: `credential`, `static`, `bearer`, `secret_manager`, …
    pub kind: Arc<str>,
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// Outgoing arcs of a step.
#[derive(Debug, Default)]
pub struct Router {
    /// Whether only the first or all matching arcs are taken.
    pub mode: RoutingMode,
    /// Effect if no arc matches.
    pub on_no_match: OnNoMatch,
    /// Arcs in document order. Empty for a leaf step.
    pub arcs: Vec<NextArc>,
}

/// Number of arcs that a router takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoutingMode {
    /// Takes only the first arc that matches.
    #[default]
    Exclusive,
    Inclusive,
}

/// Effect if no arc matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNoMatch {
    #[default]
    End,
    Fail,
}

#[derive(Debug)]
pub struct NextArc {
    /// Step that the arc leads to.
    pub to: StepIx,
    /// Condition under which the arc is taken.
    pub when: Guard,
    /// Assignments applied when the arc is taken.
    pub set: Vec<Assignment>,
    /// Whether the arc is considered after a failure: `on: error`, or a condition that refers to
    /// failure.
    pub on_failure: bool,
    /// Whether the arc is considered after success. `false` for `on: error`.
    pub on_success: bool,
}

/// Rule by which waiting join tokens start a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JoinRule {
    /// Starts the step once, when no other unfinished work can still reach it in this round.
    #[default]
    All,
    /// Starts the step once per token.
    Each,
    /// Starts the step with the first token of a round. Drops the others.
    Any,
}

/// Effect of an unhandled failure of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Fail,
    /// The step counts as done. Its error is available as `output.error`.
    Continue,
}
