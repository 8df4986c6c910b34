//! Requests to start an execution, and their prepared form.

use std::sync::Arc;

use noetl_engine::StartInput;
use noetl_model::{CatalogId, CommandId, ExecutionId, Map};
use noetl_playbook::Playbook;

use crate::traces::TraceParent;

#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    /// Catalog entry to start. Takes precedence over `path`.
    pub catalog: Option<CatalogId>,
    pub path: Option<String>,
    /// Version at `path`. `None` selects the newest.
    pub version: Option<u32>,
    /// Values merged over the playbook's workload.
    pub payload: Map,
    /// Parent execution, if an execution requests the start.
    pub parent: Option<ExecutionId>,
    /// Worker pool for the commands of the execution.
    pub pool: Option<String>,
    /// Trace the execution belongs to.
    pub trace: TraceParent,
}

/// Prepared start with its compiled playbook.
pub struct PreparedStart {
    pub(super) start: StartInput,
    pub(super) playbook: Arc<Playbook>,
}

/// Link of a child execution to the command that called it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParentLink {
    /// Calling command, if it waits for the child.
    pub(crate) command: Option<CommandId>,
    /// Step of the child whose data the caller requested.
    pub(crate) returns: Option<Arc<str>>,
    pub(crate) depth: u32,
}

impl PreparedStart {
    /// Adds the link to the calling command.
    pub(crate) fn with_parent(mut self, of: ParentLink) -> Self {
        self.start.parent_command = of.command;
        self.start.returns = of.returns;
        self.start.depth = of.depth;
        self
    }
}

/// Execution ID assigned before the start, with its start key. Starting it again with the same key
/// is a duplicate.
#[derive(Debug, Clone, Copy)]
pub struct PreassignedId {
    pub execution: ExecutionId,
    pub key: u64,
}
