//! The tool of every simulated step.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Value};
use noetl_tools::{Tool, ToolCall};

use super::scene::Scene;

/// Takes the time that its configuration names, then returns the configuration or fails.
pub(crate) struct Scripted {
    pub(crate) scene: Arc<Scene>,
    /// Process of the control plane that runs the tool, or `None` on a remote worker.
    pub(crate) life: Option<u64>,
}

#[async_trait]
impl Tool for Scripted {
    fn kind(&self) -> &'static str {
        "noop"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let script = call.config.get("result").cloned().unwrap_or(Value::Null);
        let takes = script.get("ms").and_then(Value::as_u64).unwrap_or_default();
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                return Err(Failure::new(FailureKind::Cancelled, "stopped"));
            }
            () = tokio::time::sleep(Duration::from_millis(takes)) => {}
        }
        if let Some(life) = self.life {
            self.scene.gate(life).await;
        }
        match script.get("fails").and_then(Value::as_bool) {
            Some(true) => Err(Failure::new(FailureKind::Unknown, "as its configuration says")),
            _ => Ok(script),
        }
    }
}
