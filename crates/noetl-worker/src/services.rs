//! Control-plane services that a worker offers to tools.

use std::sync::Arc;

use async_trait::async_trait;

use noetl_model::{Failure, FailureKind, Value};
use noetl_tools::{Artifacts, CredentialSource, LogSink};
use noetl_work::ResolvedPlaceholder;

use crate::task::CommandTask;

/// Provides each command with the services its tools may use.
#[async_trait]
pub trait Services: Send + Sync {
    /// Returns access to stored results, or `None` if this worker has none.
    fn artifacts(&self, command: &CommandTask) -> Option<Arc<dyn Artifacts>>;

    /// Returns access to stored credentials, or `None` if this worker has none.
    fn credentials(&self, command: &CommandTask) -> Option<Arc<dyn CredentialSource>>;

    /// Returns the sink for the command's step logs. Discards them by default.
    fn logs(&self, _command: &CommandTask) -> LogSink {
        LogSink::default()
    }

    /// Resolves a placeholder within the command's execution. Only the control plane can tell
    /// whether a text is a valid placeholder.
    async fn resolve(
        &self,
        command: &CommandTask,
        text: &str,
    ) -> Result<ResolvedPlaceholder, Failure>;

    /// Registers a secret that the command obtained itself, so that it is redacted in everything
    /// the worker reports.
    async fn note_secret(
        &self,
        command: &CommandTask,
        alias: &str,
        data: &Value,
    ) -> Result<(), Failure>;
}

/// Provides no services. A tool that needs one fails with an explanation.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

#[async_trait]
impl Services for NoServices {
    fn artifacts(&self, _command: &CommandTask) -> Option<Arc<dyn Artifacts>> {
        None
    }

    fn credentials(&self, _command: &CommandTask) -> Option<Arc<dyn CredentialSource>> {
        None
    }

    async fn resolve(&self, _: &CommandTask, _: &str) -> Result<ResolvedPlaceholder, Failure> {
        Ok(ResolvedPlaceholder::Text)
    }

    async fn note_secret(&self, _: &CommandTask, _: &str, _: &Value) -> Result<(), Failure> {
        Ok(())
    }
}

/// Returns the failure of a step whose credential doesn't exist.
pub fn no_credential(alias: &str) -> Failure {
    Failure::new(
        FailureKind::Auth,
        format!(
            "there is no credential '{alias}'; keep one with 'POST /api/credentials' and \
             {{\"name\": \"{alias}\", \"type\": …, \"data\": {{…}}}}, or for one run with \
             'noetl run --credentials FILE'"
        ),
    )
}
