//! A command assigned to the worker in this process.

use std::sync::Arc;

use noetl_model::event::CommandSpec;
use noetl_model::{CommandId, ExecutionId, Tenant};
use tokio_util::sync::CancellationToken;

use crate::dispatch::WorkerSlot;

/// A claimed command, to be run and reported.
pub struct CommandAssignment {
    pub execution: ExecutionId,
    pub command: CommandId,
    pub tenant: Tenant,
    pub issued: Arc<CommandSpec>,
    /// Fires when the command must stop.
    pub cancel: CancellationToken,
    pub(crate) slot: WorkerSlot,
}
