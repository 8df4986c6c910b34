//! What tools ask of the control plane through their worker.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_control::LocalCommands;
use noetl_model::{ExecutionId, Failure, Value};
use noetl_tools::{Artifacts, CredentialSource};

use crate::perform::Command;

/// Gives each command what its tools may ask.
pub trait Services: Send + Sync {
    /// Results kept beside the log; `None` when there is no way to them.
    fn artifacts(&self, command: &Command) -> Option<Arc<dyn Artifacts>>;

    /// Stored credentials; `None` when there is no way to them.
    fn credentials(&self, command: &Command) -> Option<Arc<dyn CredentialSource>>;
}

/// No services: tools that need one say so.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn artifacts(&self, _command: &Command) -> Option<Arc<dyn Artifacts>> {
        None
    }

    fn credentials(&self, _command: &Command) -> Option<Arc<dyn CredentialSource>> {
        None
    }
}

/// The services of a control plane in the same process.
pub(crate) struct LocalServices(pub(crate) LocalCommands);

impl Services for LocalServices {
    fn artifacts(&self, command: &Command) -> Option<Arc<dyn Artifacts>> {
        let (commands, execution) = (self.0.clone(), command.execution);
        let step = command.issued.step.clone();
        Some(Arc::new(LocalArtifacts { commands, execution, step }))
    }

    fn credentials(&self, _command: &Command) -> Option<Arc<dyn CredentialSource>> {
        None
    }
}

struct LocalArtifacts {
    commands: LocalCommands,
    execution: ExecutionId,
    step: Arc<str>,
}

#[async_trait]
impl Artifacts for LocalArtifacts {
    async fn get(&self, reference: &str) -> Result<Value, Failure> {
        self.commands.artifact(reference).await
    }

    async fn put(&self, value: Value) -> Result<Value, Failure> {
        self.commands.keep_artifact(self.execution, &self.step, &value).await
    }
}
