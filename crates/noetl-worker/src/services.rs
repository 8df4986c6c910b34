//! Control-plane services that a worker offers to tools.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_control::{CredentialError, LocalCommands, LogStream, ResolvedPlaceholder};
use noetl_model::placeholder::without_tags;
use noetl_model::{ExecutionId, Failure, FailureKind, Map, Value};
use noetl_tools::{Artifacts, CredentialSource, LogSink, Stream, ToolCredential};

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

/// Services of a control plane in the same process.
pub(crate) struct LocalServices(pub(crate) LocalCommands);

#[async_trait]
impl Services for LocalServices {
    fn artifacts(&self, command: &CommandTask) -> Option<Arc<dyn Artifacts>> {
        let (commands, execution) = (self.0.clone(), command.execution);
        let step = command.issued.step.clone();
        Some(Arc::new(LocalArtifacts { commands, execution, step }))
    }

    fn credentials(&self, command: &CommandTask) -> Option<Arc<dyn CredentialSource>> {
        let (commands, execution) = (self.0.clone(), command.execution);
        Some(Arc::new(LocalCredentials { commands, execution }))
    }

    fn logs(&self, command: &CommandTask) -> LogSink {
        let print = self.0.printer(command.execution, command.id);
        LogSink::new(move |stream, text| {
            let stream = match stream {
                Stream::Stdout => LogStream::Out,
                Stream::Stderr => LogStream::Err,
            };
            print(stream, text);
        })
    }

    async fn resolve(
        &self,
        command: &CommandTask,
        text: &str,
    ) -> Result<ResolvedPlaceholder, Failure> {
        let resolved = self.0.resolve(command.execution, text).await;
        resolved.map_err(|error| not_to_be_had(&without_tags(text), &error))
    }

    async fn note_secret(
        &self,
        command: &CommandTask,
        alias: &str,
        data: &Value,
    ) -> Result<(), Failure> {
        let noted = self.0.note_secret(command.execution, alias, data).await;
        noted.map_err(|error| {
            // A secret that is not registered must not be used: it could not be redacted from the
            // event log.
            Failure::new(FailureKind::Connection, format!("a secret cannot be noted: {error}"))
        })
    }
}

struct LocalCredentials {
    commands: LocalCommands,
    execution: ExecutionId,
}

#[async_trait]
impl CredentialSource for LocalCredentials {
    async fn get(&self, alias: &str) -> Result<ToolCredential, Failure> {
        let found = self.commands.credential(self.execution, alias).await;
        let found = found.map_err(|error| not_to_be_had(alias, &error))?;
        let data = match found.data {
            Value::Object(data) => data,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Ok(ToolCredential { name: found.name, kind: found.kind, data })
    }
}

/// Returns the failure of a step whose credential doesn't exist.
pub(crate) fn no_credential(alias: &str) -> Failure {
    Failure::new(
        FailureKind::Auth,
        format!(
            "there is no credential '{alias}'; keep one with 'POST /api/credentials' and \
             {{\"name\": \"{alias}\", \"type\": …, \"data\": {{…}}}}, or for one run with \
             'noetl run --credentials FILE'"
        ),
    )
}

fn not_to_be_had(alias: &str, error: &CredentialError) -> Failure {
    match error {
        CredentialError::NotFound(_) => no_credential(alias),
        CredentialError::Store(error)
        | CredentialError::Unrecorded(error)
        | CredentialError::ChangeUnrecorded(error) => Failure::new(
            FailureKind::Connection,
            format!("credential '{alias}' cannot be read now: {error}"),
        ),
        CredentialError::Sealed { source, .. } => Failure::new(
            FailureKind::Auth,
            format!("credential '{alias}' cannot be opened: {source}"),
        ),
        CredentialError::NoKey
        | CredentialError::Unnamed(_)
        | CredentialError::TooLarge(_)
        | CredentialError::NotGranted { .. }
        | CredentialError::Unresolved { .. }
        | CredentialError::Worker { .. } => Failure::new(
            FailureKind::Auth,
            format!("credential '{alias}' cannot be opened: {error}"),
        ),
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
