//! Tools and their calls.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Failure, Map, Tenant, TraceContext, Value};
use tokio_util::sync::CancellationToken;

use crate::logs::LogSink;
use crate::seams::{Artifacts, CredentialSource};

/// A call of a tool, with all templates rendered.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Execution that the step belongs to.
    pub execution: ExecutionId,
    /// Command of the call. Together with `attempt`, a key for idempotent calls.
    pub command: CommandId,
    /// Tenant of the execution. Steps of two tenants never share a sandbox.
    pub tenant: Tenant,
    /// Name of the step.
    pub step: Arc<str>,
    /// Attempt number, from 1.
    pub attempt: u32,
    pub config: Map,
    /// Named arguments of the tool.
    pub input: Map,
    /// Timeout. `None` for the default of the tool.
    pub timeout: Option<Duration>,
    /// Cancelled when the result is no longer needed.
    pub cancel: CancellationToken,
    /// Receives the output while the call runs. Default: discards it.
    pub logs: LogSink,
    /// Data about the execution beyond the input. Python code sees it as `context`.
    pub context: Map,
    /// Results stored outside the event log. `None` if the worker has no access to them.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Stored credentials. `None` if the worker has no access to them.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// Trace context of the call, whose span is the parent of requests that the tool sends.
    pub trace: Option<TraceContext>,
}

/// A tool that steps can run.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the `kind` that playbooks use.
    fn kind(&self) -> &'static str;

    /// Runs one call within its timeout, and stops everything it started when the call is
    /// cancelled.
    async fn run(&self, call: ToolCall) -> Result<Value, Failure>;
}
