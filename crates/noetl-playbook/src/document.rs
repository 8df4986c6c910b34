//! The compiled playbook: what the engine reads.
//!
//! Steps are addressed by [`StepIx`], their place in the document. Everything a template could say
//! is compiled; everything a name could refer to is resolved.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::graph::Graph;
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

/// A checked playbook.
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
    /// Whether a step none of whose arcs matched fails (`executor.spec.no_next_is_error`).
    pub no_next_is_error: bool,
    /// All steps, in document order.
    pub steps: Vec<Step>,
    /// Which arcs close loops, and what a join waits for.
    pub graph: Graph,
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
    /// Its unique name.
    pub name: Arc<str>,
    /// What it runs; a step without a tool only routes.
    pub tool: Option<Tool>,
    /// Assignments made when it completes, before its arcs are decided.
    pub set: Vec<Assignment>,
    /// Its outgoing arcs.
    pub router: Router,
    /// When tokens that wait at it start it.
    pub join: Join,
    /// Whether an unhandled failure of this step lets the branch go on (`spec.on_error`).
    pub on_error: OnError,
}

/// What a step runs.
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
}

/// `target: value` of a `set` block.
#[derive(Debug)]
pub struct Assignment {
    /// Which scope is written.
    pub scope: SetScope,
    /// The path below that scope, at least one name.
    pub path: Vec<String>,
    /// What is written.
    pub value: ValueTemplate,
}

/// Where an assignment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetScope {
    /// Durable variables of the execution.
    Ctx,
    /// Names that this visit's arcs can read.
    Step,
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
    /// All that match.
    Inclusive,
}

/// What happens when no arc matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNoMatch {
    /// The branch ends.
    #[default]
    End,
    /// The step fails.
    Fail,
}

/// One outgoing arc.
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
    /// The execution fails.
    #[default]
    Fail,
    /// The step counts as done, its error visible as `output.error`.
    Continue,
}
