//! Assigns commands to the worker in this process and commits its reports.

use std::borrow::Cow;
use std::sync::Arc;

use noetl_engine::{Complete, Fail, Input};
use noetl_model::event::BlobRef;
use noetl_model::placeholder::without_tags;
use noetl_model::{Clock, CommandId, ExecutionId, Failure, FailureKind, Value};
use noetl_results::{ResultError, ResultStorage};
use noetl_secrets::{CredentialError, LocalSecrets, OpenCredential};
use noetl_store::{LogStream, StoreError};
use noetl_template::{blob_of_ref, result_ref};
use noetl_work::{CommandOutcome, ResolvedPlaceholder};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::assignment::CommandAssignment;
use crate::dispatch::Dispatcher;
use crate::journal::{Journal, RETRY, SubmitError};
use crate::step_logs::StepLogs;

/// Worker name under which this process claims commands. At startup, any command still claimed
/// under it belonged to a process that has died.
pub use noetl_model::command::LOCAL_WORKER;

/// Error of reading a blob.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct LoadError {
    /// Whether a retry may succeed.
    pub is_passing: bool,
    source: ResultError,
}

/// Source of commands, and sink of reports, for a worker in this process. Cheap to clone.
#[derive(Clone)]
pub struct LocalCommands {
    parts: LocalDeps,
    assignments: Arc<Mutex<mpsc::Receiver<CommandAssignment>>>,
}

#[derive(Clone)]
pub(crate) struct LocalDeps {
    pub(crate) journal: Journal,
    pub(crate) results: ResultStorage,
    pub(crate) dispatch: Dispatcher,
    pub(crate) secrets: LocalSecrets,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) logs: StepLogs,
    pub(crate) draining: CancellationToken,
    pub(crate) closing: CancellationToken,
}

impl LocalCommands {
    pub(crate) fn new(parts: LocalDeps, assignments: mpsc::Receiver<CommandAssignment>) -> Self {
        Self { parts, assignments: Arc::new(Mutex::new(assignments)) }
    }

    /// Returns the control plane's clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.parts.clock.clone()
    }

    /// Returns a function that records output of a command. It never blocks: output is dropped if
    /// the queue is full.
    pub fn printer(
        &self,
        execution: ExecutionId,
        command: CommandId,
    ) -> impl Fn(LogStream, &str) + Send + Sync + 'static {
        self.parts.logs.printer(execution, command)
    }

    /// Waits for the next claimed command. Returns `None` once the control plane drains.
    pub async fn next(&self) -> Option<CommandAssignment> {
        let mut assignments = self.assignments.lock().await;
        tokio::select! {
            biased;
            () = self.parts.draining.cancelled() => None,
            assignment = assignments.recv() => assignment,
        }
    }

    /// Removes and returns commands that were claimed for the worker but not received by it. The
    /// caller has to release them.
    pub(crate) async fn take_undelivered(&self) -> Vec<CommandId> {
        let mut assignments = self.assignments.lock().await;
        let mut untaken = Vec::new();
        while let Ok(assignment) = assignments.try_recv() {
            untaken.push(assignment.command);
        }
        untaken
    }

    /// Returns the bytes of a blob.
    pub async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
        let read = self.parts.results.read(reference).await;
        read.map_err(|source| LoadError { is_passing: source.is_transient(), source })
    }

    /// Returns the credential of an alias, decrypted for a command of an execution.
    pub async fn credential(
        &self,
        execution: ExecutionId,
        alias: &str,
    ) -> Result<OpenCredential, CredentialError> {
        self.parts.secrets.credential(execution, alias).await
    }

    /// Registers a secret that a command of an execution obtained by itself, so redaction replaces
    /// it in all output.
    pub async fn note_secret(
        &self,
        execution: ExecutionId,
        alias: &str,
        data: &Value,
    ) -> Result<(), StoreError> {
        self.parts.secrets.note(execution, alias, data).await
    }

    /// Returns the value that a placeholder stands for in an execution.
    pub async fn resolve(
        &self,
        execution: ExecutionId,
        text: &str,
    ) -> Result<ResolvedPlaceholder, CredentialError> {
        self.parts.secrets.resolve(execution, text).await
    }

    /// Returns the value of a result reference.
    pub async fn artifact(&self, reference: &str) -> Result<Value, Failure> {
        let wrong = |message: String| Failure::new(FailureKind::NotFound, message);
        let blob = blob_of_ref(reference)
            .ok_or_else(|| wrong(format!("'{reference}' is no reference to a result")))?;
        let bytes = self.parts.results.read(&blob).await.map_err(|error| {
            let kind =
                if error.is_transient() { FailureKind::Connection } else { FailureKind::NotFound };
            Failure::new(kind, format!("the result cannot be read: {error}"))
        })?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Failure::new(FailureKind::Parse, format!("the result is no JSON: {error}"))
        })
    }

    /// Stores a value as a blob and returns a reference object for it.
    pub async fn keep_artifact(
        &self,
        execution: ExecutionId,
        step: &str,
        value: &Value,
    ) -> Result<Value, Failure> {
        let mut value = Cow::Borrowed(value);
        if !self.parts.secrets.redaction.is_empty() {
            let tenant = self.parts.secrets.tenant(execution).await.map_err(|error| {
                Failure::new(FailureKind::Connection, format!("the value is not kept: {error}"))
            })?;
            self.parts.secrets.redaction.value(&tenant, value.to_mut());
        }
        let blob = self.parts.results.put(&value).await.map_err(|error| {
            Failure::new(FailureKind::Connection, format!("the value is not kept: {error}"))
        })?;
        let reference = result_ref(execution, step, &blob);
        Ok(serde_json::json!({
            "kind": "result_ref",
            "ref": reference,
            "_ref": reference,
            "meta": { "bytes": blob.bytes, "sha256": blob.digest.trim_start_matches("sha256:") },
        }))
    }

    /// Reports the outcome of a command with secrets redacted. Retries until the report is
    /// committed or the control plane closes.
    pub async fn report(&self, assignment: CommandAssignment, mut ended: CommandOutcome) {
        let CommandAssignment { execution, command, slot, issued, .. } = assignment;
        if !self.redact(execution, &mut ended).await {
            // Closing: the command stays claimed, and is released on shutdown or recovered at the
            // next start.
            return;
        }
        self.parts.logs.flush_of(command).await;
        if let Err(failure) = &ended.outcome {
            let failure = failure.to_string();
            let failure = without_tags(&failure);
            debug!(execution.id = %execution, step = %issued.step, %failure, "command failed");
        }
        let CommandOutcome { outcome, ctx, step } = ended;
        let input = match outcome {
            Ok(data) => match self.keep(data).await {
                Some((data, reference)) => {
                    let (data, is_final) = (Some(data), true);
                    Input::Complete(Complete {
                        command,
                        data,
                        reference,
                        is_final,
                        ctx,
                        step,
                        run: None,
                    })
                }
                // Closing, as above.
                None => return,
            },
            Err(failure) => Input::Fail(Fail { command, failure, ctx, step }),
        };
        let taken = self
            .parts
            .journal
            .submit_with_retry(execution, input, Some(slot), &self.parts.closing)
            .await;
        match taken {
            Ok(()) | Err(SubmitError::Refused(_)) => {}
            // Closing, as above.
            Err(SubmitError::Stopped) => return,
            Err(error) => warn!(execution.id = %execution, %error, "failed to commit report"),
        }
        // Not earlier: until the report is committed, no other worker may run the command.
        self.parts.dispatch.untrack(command);
    }

    /// Replaces secrets by placeholders. Returns `false` if the control plane closes before that is
    /// done.
    async fn redact(&self, execution: ExecutionId, ended: &mut CommandOutcome) -> bool {
        if self.parts.secrets.redaction.is_empty() {
            return true;
        }
        let mut delays = RETRY.delays();
        loop {
            match self.parts.secrets.tenant(execution).await {
                Ok(tenant) => {
                    let minter = self.parts.secrets.minter(&tenant, execution);
                    let mint = |alias: &str, field: &str| minter.as_ref()?.mint(alias, field);
                    self.parts.secrets.redaction.ended(&tenant, ended, Some(&mint));
                    return true;
                }
                Err(error) => warn!(%error, "failed to read execution's tenant, retrying"),
            }
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = self.parts.closing.cancelled() => return false,
            }
        }
    }

    /// Stores a large result as a blob. Retries until it is stored; returns `None` if the control
    /// plane closes before.
    async fn keep(&self, mut data: Value) -> Option<(Value, Option<Arc<BlobRef>>)> {
        let mut delays = RETRY.delays();
        loop {
            match self.parts.results.offload(&mut data).await {
                Ok(reference) => return Some((data, reference)),
                Err(error) => warn!(%error, "failed to store large result, retrying"),
            }
            tokio::select! {
                () = tokio::time::sleep(delays.next_delay()) => {}
                () = self.parts.closing.cancelled() => return None,
            }
        }
    }
}
