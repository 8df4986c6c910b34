//! Calls of tools, and projections of their results.

use std::sync::Arc;
use std::time::Duration;

use noetl_template::ValueTemplate;
use serde::{Deserialize, Serialize};

/// A call of a tool.
#[derive(Debug)]
pub struct Tool {
    /// Tool kind. Always a known kind.
    pub kind: Arc<str>,
    /// Settings without `kind`, `name`, `input`, `set`, and `spec`.
    pub config: ValueTemplate,
    /// Named arguments. The tool's own override the step's.
    pub input: ValueTemplate,
    /// Time limit of a call.
    pub timeout: Option<Duration>,
    pub select: Vec<Selection>,
    /// Whether the tool may run again after its worker was lost. Default: `true`.
    pub idempotent: bool,
}

/// A projection of a result (`output_select`, `output.select`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Name of the field, added beside the result's own keys.
    pub name: Arc<str>,
    /// Keys and list indexes that lead to the value.
    pub path: Vec<Arc<str>>,
}
