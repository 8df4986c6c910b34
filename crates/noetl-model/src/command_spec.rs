//! Specification of a command, as issued by the engine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Map;
use crate::scope::{CommandScope, SplitScope};
use crate::trace::Trace;

/// Specification of an issued command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// Step that the command runs.
    pub step: Arc<str>,
    /// Number of the step run, from 1.
    pub run: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    pub tool: Arc<str>,
    /// Rendered configuration of the tool, without `kind` and `input`.
    pub config: Map,
    /// Rendered named arguments of the tool.
    pub input: Map,
    /// Time limit of the tool in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Values available to templates that the worker still has to render. `None` if everything is
    /// rendered.
    pub scope: Option<Box<CommandScope>>,
    /// Loop item that the command is for.
    pub item: Option<LoopItem>,
    /// Whether the command may run again after its worker was lost.
    pub idempotent: bool,
    /// Pool whose workers claim the command. `None` for the default pool.
    pub pool: Option<Arc<str>>,
    /// Trace of the execution. The command's span ID in it derives from the command's ID.
    pub trace: Option<Arc<Trace>>,
}

impl CommandSpec {
    /// Returns the position in a split pipeline, or `None` for every other command.
    pub fn split(&self) -> Option<&SplitScope> {
        self.scope.as_deref()?.split.as_deref()
    }
}

/// Loop item of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopItem {
    /// Index of the item, from 0.
    pub index: u32,
    /// Total number of items, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// Frame that the row was claimed with. For a claim, the frame being claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
    /// Whether the command claims rows instead of processing one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims: bool,
}
