//! Assignments of `set` blocks: a scope, a path below it, and a value.

use noetl_template::ValueTemplate;
use serde::{Deserialize, Serialize};

/// An assignment: `target: value` of a `set` block.
#[derive(Debug)]
pub struct Assignment {
    /// Scope that the assignment writes to.
    pub scope: SetScope,
    /// Path below the scope. Has at least one name.
    pub path: Vec<String>,
    pub value: ValueTemplate,
}

impl Assignment {
    /// Formats the target as written: `ctx.a.b`.
    pub fn target(&self) -> String {
        format!("{}.{}", self.scope.as_str(), self.path.join("."))
    }
}

/// Scope that an assignment writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetScope {
    /// Durable variables of the execution.
    Ctx,
    /// Variables that the arcs of this step run can read.
    Step,
    /// Variables of a single iteration.
    Iter,
}

impl SetScope {
    /// Returns the name used in playbooks.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ctx => "ctx",
            Self::Step => "step",
            Self::Iter => "iter",
        }
    }
}
