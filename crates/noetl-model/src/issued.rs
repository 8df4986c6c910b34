//! A unit of work as it is handed out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Map;
use crate::scope::{CommandScope, SplitScope};
use crate::trace::Trace;

/// A handed-out unit of work.
#[derive(Debug, Clone, PartialEq)]
pub struct Issued {
    /// The step it is for.
    pub step: Arc<str>,
    /// Which visit of it.
    pub generation: u32,
    /// Which try this is, from 1.
    pub attempt: u32,
    pub tool: Arc<str>,
    /// The tool's settings, rendered, without `kind` and `input`.
    pub config: Map,
    /// The tool's named arguments, rendered.
    pub input: Map,
    /// How long the tool may take.
    pub timeout_ms: Option<u64>,
    /// What templates that are still to be rendered may name; none when everything is rendered.
    pub scope: Option<Box<CommandScope>>,
    /// Which item of a loop it is for.
    pub item: Option<LoopItem>,
    /// Whether it may run again when its worker was lost.
    pub idempotent: bool,
    /// The pool whose workers take it; the default one when `None`.
    pub pool: Option<Arc<str>>,
    /// The trace of its execution. Its own span in it is known by the command's id.
    pub trace: Option<Arc<Trace>>,
}

impl Issued {
    /// Returns the position in a split pipeline, or `None` for every other command.
    pub fn split(&self) -> Option<&SplitScope> {
        self.scope.as_deref()?.split.as_deref()
    }
}

/// An item of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopItem {
    /// Its place, from 0.
    pub index: u32,
    /// How many there are, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// The frame of rows it was claimed with; for a claim, the frame that is being claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
    /// Whether the command claims rows rather than working on one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub claims: bool,
}
