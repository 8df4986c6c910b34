//! Commands for a worker in this process.

use std::borrow::Cow;
use std::sync::Arc;

use noetl_engine::{Complete, Fail, Input};
use noetl_model::event::{BlobRef, Issued};
use noetl_model::placeholder::without_tags;
use noetl_model::{Clock, CommandId, ExecutionId, Failure, FailureKind, Map, Tenant, Value};
use noetl_playbook::template::{blob_of_ref, result_ref};
use noetl_store::{LogStream, StoreError};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::credentials::{CredentialError, LocalSecrets, OpenCredential, Resolved};
use crate::dispatch::{Dispatch, Slot};
use crate::journal::{Journal, RETRY_MAX, RETRY_MIN, SubmitError};
use crate::logs::LogLines;
use crate::results::{ResultError, Results};

/// The name under which the worker in this process claims. At a start, whatever is still claimed
/// under it belonged to a process that is gone.
pub use noetl_model::command::LOCAL_WORKER;

/// One claimed command, to be run and reported.
pub struct Assignment {
    pub execution: ExecutionId,
    pub command: CommandId,
    /// Tenant of the execution.
    pub tenant: Tenant,
    pub issued: Arc<Issued>,
    /// Fires when it is not wanted any more.
    pub cancel: CancellationToken,
    pub(crate) slot: Slot,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its result, or why it failed.
    pub outcome: Result<Value, Failure>,
    /// Variables of the execution it set: dotted path to value, in the order they are to be
    /// written. They count also when it failed.
    pub ctx: Map,
    /// What it set for its step's visit alone, likewise.
    pub step: Map,
}

impl From<Result<Value, Failure>> for Ended {
    /// The end of a command that set nothing.
    fn from(outcome: Result<Value, Failure>) -> Self {
        Self { outcome, ctx: Map::new(), step: Map::new() }
    }
}

/// Why a value that is kept beside the log was not read.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct LoadError {
    /// Whether another try may be answered.
    pub is_passing: bool,
    source: ResultError,
}

/// Where a worker in this process gets its commands and reports them. Cheap to clone.
#[derive(Clone)]
pub struct LocalCommands {
    parts: LocalParts,
    assignments: Arc<Mutex<mpsc::Receiver<Assignment>>>,
}

/// What it is made of.
#[derive(Clone)]
pub(crate) struct LocalParts {
    pub(crate) journal: Journal,
    pub(crate) results: Results,
    pub(crate) dispatch: Dispatch,
    pub(crate) secrets: LocalSecrets,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) logs: LogLines,
    pub(crate) draining: CancellationToken,
    pub(crate) closing: CancellationToken,
}

impl LocalCommands {
    pub(crate) fn new(parts: LocalParts, assignments: mpsc::Receiver<Assignment>) -> Self {
        Self { parts, assignments: Arc::new(Mutex::new(assignments)) }
    }

    /// The clock of the control plane.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.parts.clock.clone()
    }

    /// Where a command prints. Never waits.
    pub fn printer(
        &self,
        execution: ExecutionId,
        command: CommandId,
    ) -> impl Fn(LogStream, &str) + Send + Sync + 'static {
        self.parts.logs.printer(execution, command)
    }

    /// The next claimed command; `None` once the control plane drains.
    pub async fn next(&self) -> Option<Assignment> {
        let mut assignments = self.assignments.lock().await;
        tokio::select! {
            biased;
            () = self.parts.draining.cancelled() => None,
            assignment = assignments.recv() => assignment,
        }
    }

    /// Commands that were claimed for the worker and not taken by it. They are its no more.
    pub(crate) async fn untaken(&self) -> Vec<CommandId> {
        let mut assignments = self.assignments.lock().await;
        let mut untaken = Vec::new();
        while let Ok(assignment) = assignments.try_recv() {
            untaken.push(assignment.command);
        }
        untaken
    }

    /// The bytes of a value that is kept beside the log.
    pub async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
        let read = self.parts.results.read(reference).await;
        read.map_err(|source| LoadError { is_passing: source.is_passing(), source })
    }

    /// The credential of an alias, opened for a command of an execution.
    pub async fn credential(
        &self,
        execution: ExecutionId,
        alias: &str,
    ) -> Result<OpenCredential, CredentialError> {
        self.parts.secrets.credential(execution, alias).await
    }

    /// Notes a secret that a command of an execution found by itself, so that it is replaced
    /// wherever it turns up.
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
    ) -> Result<Resolved, CredentialError> {
        self.parts.secrets.resolve(execution, text).await
    }

    /// The value a reference stands for.
    pub async fn artifact(&self, reference: &str) -> Result<Value, Failure> {
        let wrong = |message: String| Failure::new(FailureKind::NotFound, message);
        let blob = blob_of_ref(reference)
            .ok_or_else(|| wrong(format!("'{reference}' is no reference to a result")))?;
        let bytes = self.parts.results.read(&blob).await.map_err(|error| {
            let kind =
                if error.is_passing() { FailureKind::Connection } else { FailureKind::NotFound };
            Failure::new(kind, format!("the result cannot be read: {error}"))
        })?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Failure::new(FailureKind::Parse, format!("the result is no JSON: {error}"))
        })
    }

    /// Keeps a value beside the log; answers with what stands for it.
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

    /// Reports how a command ended, without the secrets in it. Comes again until the store takes it.
    pub async fn report(&self, assignment: Assignment, mut ended: Ended) {
        let Assignment { execution, command, slot, issued, .. } = assignment;
        if !self.redact(execution, &mut ended).await {
            // Closing: it stays claimed, and is handed back or found again at the next start.
            return;
        }
        self.parts.logs.flush_of(command).await;
        if let Err(failure) = &ended.outcome {
            let failure = failure.to_string();
            let failure = without_tags(&failure);
            debug!(execution.id = %execution, step = %issued.step, %failure, "a command failed");
        }
        let Ended { outcome, ctx, step } = ended;
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
            .submit_surely(execution, input, Some(slot), &self.parts.closing)
            .await;
        match taken {
            Ok(()) | Err(SubmitError::Refused(_)) => {}
            // Closing, as above.
            Err(SubmitError::Stopped) => return,
            Err(error) => warn!(execution.id = %execution, %error, "a report was not taken"),
        }
        // Only now: until its report is taken, nobody else may run it.
        self.parts.dispatch.ended(command);
    }

    /// Replaces secrets by placeholders. Returns `true` if that was done before this closes.
    async fn redact(&self, execution: ExecutionId, ended: &mut Ended) -> bool {
        if self.parts.secrets.redaction.is_empty() {
            return true;
        }
        let mut pause = RETRY_MIN;
        loop {
            match self.parts.secrets.tenant(execution).await {
                Ok(tenant) => {
                    let minter = self.parts.secrets.minter(&tenant, execution);
                    let mint = |alias: &str, field: &str| minter.as_ref()?.mint(alias, field);
                    self.parts.secrets.redaction.ended(&tenant, ended, Some(&mint));
                    return true;
                }
                Err(error) => warn!(%error, "an execution's tenant is not known yet"),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.parts.closing.cancelled() => return false,
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Moves a large result out of the log's way; comes again until its place takes it.
    async fn keep(&self, mut data: Value) -> Option<(Value, Option<Arc<BlobRef>>)> {
        let mut pause = RETRY_MIN;
        loop {
            match self.parts.results.keep(&mut data).await {
                Ok(reference) => return Some((data, reference)),
                Err(error) => warn!(%error, "a large result is not kept yet"),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.parts.closing.cancelled() => return None,
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }
}
