//! Services that a control plane offers to the tools of the worker in its process.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_journal::LocalCommands;
use noetl_model::event::BlobRef;
use noetl_model::placeholder::without_tags;
use noetl_model::{ExecutionId, Failure, FailureKind, Map, Value};
use noetl_secrets::CredentialError;
use noetl_store::LogStream;
use noetl_tools::{Artifacts, CredentialSource, LogSink, Stream, ToolCredential};
use noetl_work::ResolvedPlaceholder;
use noetl_worker::{CommandTask, LoadError, Services, ValueFetcher, no_credential};

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

/// Blobs of a control plane in the same process.
pub(crate) struct LocalValues(pub(crate) LocalCommands);

#[async_trait]
impl ValueFetcher for LocalValues {
    async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
        self.0
            .load(reference)
            .await
            .map_err(|error| LoadError { message: error.to_string(), is_passing: error.is_passing })
    }
}
