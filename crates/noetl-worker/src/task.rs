//! A claimed command.

use std::sync::Arc;

use noetl_model::event::CommandSpec;
use noetl_model::trace::SpanId;
use noetl_model::{CommandId, ExecutionId, Failure, FailureKind, Map, Tenant, TraceContext};
use noetl_playbook::pipeline::PipelineEnd;
use tokio_util::sync::CancellationToken;

/// A command that this worker has claimed.
#[derive(Debug, Clone)]
pub struct CommandTask {
    pub execution: ExecutionId,
    pub id: CommandId,
    pub tenant: Tenant,
    pub issued: Arc<CommandSpec>,
    /// Cancelled when the command's result is no longer needed.
    pub cancel: CancellationToken,
}

impl CommandTask {
    /// Returns the trace context for the command's outgoing calls, with the command's span as the
    /// parent.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let trace = self.issued.trace.clone()?;
        Some(TraceContext::new(trace, SpanId::of_command(self.id)))
    }
}

/// Returns the end of a cancelled pipeline.
pub(crate) fn cancelled() -> PipelineEnd {
    let failure = Failure::new(FailureKind::Cancelled, "the command was told to stop");
    PipelineEnd { outcome: Err(failure), ctx: Map::new(), iter: Map::new(), step: Map::new() }
}
