//! What is asked of a start, and what is made of it.

use std::sync::Arc;

use noetl_engine::Start;
use noetl_model::{CatalogId, CommandId, ExecutionId, Map};
use noetl_playbook::Playbook;

use crate::traces::TraceOf;

#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    /// The catalog entry; wins over `path`.
    pub catalog: Option<CatalogId>,
    pub path: Option<String>,
    /// That path's version; the newest when `None`.
    pub version: Option<u32>,
    /// Laid over the playbook's workload.
    pub payload: Map,
    /// The execution that asks.
    pub parent: Option<ExecutionId>,
    /// Which workers its commands go to.
    pub pool: Option<String>,
    /// The trace it belongs to.
    pub trace: TraceOf,
}

/// What is to be started, with its playbook.
pub(crate) struct Ready {
    pub(super) start: Start,
    pub(super) playbook: Arc<Playbook>,
}

/// What an execution knows of the command that called it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChildOf {
    /// The command, if it waits.
    pub(crate) command: Option<CommandId>,
    /// The step whose data it asked for.
    pub(crate) returns: Option<Arc<str>>,
    /// How many executions are above.
    pub(crate) depth: u32,
}

impl Ready {
    /// The same, called by a command.
    pub(crate) fn under(mut self, of: ChildOf) -> Self {
        self.start.parent_command = of.command;
        self.start.returns = of.returns;
        self.start.depth = of.depth;
        self
    }
}

/// An execution whose id is known before it is started. Starting it again with the same key is a
/// repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) execution: ExecutionId,
    pub(crate) key: u64,
}
