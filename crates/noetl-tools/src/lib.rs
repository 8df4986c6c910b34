//! The tools a step can run, one file each, behind one trait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Failure, FailureKind, Map, Value};
use tokio_util::sync::CancellationToken;

/// One call of a tool: everything is rendered, nothing is a template.
#[derive(Debug, Clone)]
pub struct Call {
    /// The execution it is for.
    pub execution: ExecutionId,
    /// The command it is for; with `attempt` a key for idempotent calls.
    pub command: CommandId,
    /// The step it is for.
    pub step: Arc<str>,
    /// Which try it is, from 1.
    pub attempt: u32,
    /// The tool's settings.
    pub config: Map,
    /// The tool's named arguments.
    pub input: Map,
    /// How long it may take; the tool's own default when `None`.
    pub timeout: Option<Duration>,
    /// Fires when the call is not wanted any more.
    pub cancel: CancellationToken,
}

/// Something a step can run.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The `kind` playbooks name it by.
    fn kind(&self) -> &'static str;

    /// Runs one call to its end, within its timeout, and stops what it started when cancelled.
    async fn run(&self, call: Call) -> Result<Value, Failure>;
}

/// The tools of one worker, by kind.
#[derive(Clone, Default)]
pub struct Registry {
    tools: HashMap<&'static str, Arc<dyn Tool>>,
}

impl Registry {
    /// Adds a tool, in place of an earlier one of its kind.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.insert(tool.kind(), Arc::new(tool));
        self
    }

    /// Runs one call with the tool of this kind.
    pub async fn run(&self, kind: &str, call: Call) -> Result<Value, Failure> {
        match self.tools.get(kind) {
            Some(tool) => tool.run(call).await,
            None => Err(Failure::new(
                FailureKind::ToolMissing,
                format!("this worker has no tool of kind '{kind}'"),
            )),
        }
    }
}
