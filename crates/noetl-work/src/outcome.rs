//! Outcome of a command, as tools and workers report it.

use noetl_model::{Failure, Map, Value};

/// Outcome of a command, with the variables it set.
#[derive(Debug)]
pub struct CommandOutcome {
    /// Result of the command, or the failure.
    pub outcome: Result<Value, Failure>,
    /// Execution variables set by the command: dotted path to value, in write order. Applied even
    /// if the command failed.
    pub ctx: Map,
    /// Variables set for the step run only, in the same form.
    pub step: Map,
}

impl From<Result<Value, Failure>> for CommandOutcome {
    /// Creates the outcome of a command that set no variables.
    fn from(outcome: Result<Value, Failure>) -> Self {
        Self { outcome, ctx: Map::new(), step: Map::new() }
    }
}
