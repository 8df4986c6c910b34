//! Records completions of remote workers: result, variables, and end of a command in one report.
//!
//! A remote worker sends everything in one request, so the event log gets the same events as from a
//! local worker. The worker has already replaced secrets by the placeholders that it received with
//! them, whichever server sent them. This process then redacts the secrets it knows itself.

use std::sync::Arc;

use noetl_engine::{Complete, Fail, Input, RecordReport};
use noetl_journal::{Accepted, LeaseHolder, SubmitError, TenantScope};
use noetl_model::event::{BlobRef, ReportedEvent};
use noetl_model::row::types;
use noetl_model::{
    CommandId, CommandState, DEPTH_MAX, EventId, ExecutionId, Map, Value, is_deeper_than,
};
use noetl_store::{CommandChange, Digest};
use noetl_work::CommandOutcome;

use super::{ReportError, Reports};
use crate::leasing::{CachedExecution, LeasedRow};

#[derive(Debug)]
pub struct Completion {
    pub execution: ExecutionId,
    pub command: CommandId,
    /// Outcome of the command. With a reference, the data contains only its small fields.
    pub ended: CommandOutcome,
    /// Blob with the result, if that is too large for the event log.
    pub reference: Option<BlobRef>,
}

/// Outcome of recording a completion.
#[derive(Debug)]
pub struct CompletionAck {
    /// Whether the completion took effect. If not, the command had ended or is unknown, and nothing
    /// changed.
    pub counts: bool,
    /// Command handed off to the reporting worker, which now holds its lease.
    pub next: Option<LeasedRow>,
}

impl CompletionAck {
    const LATE: Self = Self { counts: false, next: None };
}

impl Reports {
    /// Records the completion of a command. A repeated completion counts as late and has no effect.
    /// With `next`, the worker may be given one of the resulting commands.
    pub async fn record_completion(
        &self,
        scope: &TenantScope,
        worker: &str,
        end: Completion,
        next: Option<&LeaseHolder>,
    ) -> Result<CompletionAck, ReportError> {
        let Completion { execution, command, mut ended, reference } = end;
        if is_too_deep(&ended) {
            return Err(ReportError::TooDeep);
        }
        let of =
            self.known.get_or_load(&*self.store, execution).await.map_err(ReportError::Store)?;
        let Some(of) = of else { return Ok(CompletionAck::LATE) };
        let tenant = &of.0;
        if scope.as_ref().is_some_and(|scope| scope != tenant) {
            return Ok(CompletionAck::LATE);
        }
        let minter = self.placeholders.minter(tenant, execution);
        let mint = |alias: &str, field: &str| minter.as_ref()?.mint(alias, field);
        self.redaction.ended(tenant, &mut ended, Some(&mint));
        let reference = match reference {
            Some(reference) => Some(self.kept(reference).await?),
            None => None,
        };
        let late = Late::from_outcome(&ended);
        let input = self.input(command, ended, reference).await?;
        let submitted = match next {
            Some(next) => self.journal.submit_from_worker(execution, input, next.clone()).await,
            None => self.journal.submit(execution, input).await,
        };
        match submitted {
            Ok(accepted) if !accepted.events.is_empty() => {
                let next = handed_out(&accepted, of);
                if let Some(leased) = &next {
                    self.handed.remember(command, leased.clone());
                }
                Ok(CompletionAck { counts: true, next })
            }
            Ok(_) | Err(SubmitError::Refused(_)) => {
                self.note_late(execution, command, worker, late).await?;
                if next.is_none() {
                    return Ok(CompletionAck::LATE);
                }
                let next = self.handed.resend(&*self.store, command, worker).await;
                Ok(CompletionAck { counts: false, next: next.map_err(ReportError::Store)? })
            }
            Err(error) => Err(ReportError::Submit(error)),
        }
    }

    async fn input(
        &self,
        command: CommandId,
        ended: CommandOutcome,
        reference: Option<Arc<BlobRef>>,
    ) -> Result<Input, ReportError> {
        let CommandOutcome { outcome, ctx, step } = ended;
        let mut data = match outcome {
            Ok(data) => data,
            Err(failure) => return Ok(Input::Fail(Fail { command, failure, ctx, step })),
        };
        let reference = match reference {
            Some(reference) => Some(reference),
            None => self.results.offload(&mut data).await.map_err(ReportError::from)?,
        };
        let (data, is_final) = (Some(data), true);
        Ok(Input::Complete(Complete { command, data, reference, is_final, ctx, step, run: None }))
    }

    /// Returns a reference to an existing blob, and protects the blob from garbage collection until
    /// the event log refers to it.
    async fn kept(&self, reference: BlobRef) -> Result<Arc<BlobRef>, ReportError> {
        let missing = || ReportError::NoContent(reference.digest.to_string());
        let digest: Digest = reference.digest.parse().map_err(|_| missing())?;
        match self.results.touch(digest).await.map_err(ReportError::from)? {
            true => Ok(Arc::new(reference)),
            false => Err(missing()),
        }
    }

    /// Records, once, a late completion of a command that has expired or was cancelled. A second
    /// completion of a command that already completed or failed is a repeat and is not recorded.
    async fn note_late(
        &self,
        execution: ExecutionId,
        command: CommandId,
        worker: &str,
        late: Late,
    ) -> Result<(), ReportError> {
        let row = self.store.command(command).await.map_err(ReportError::Store)?;
        let Some(row) = row.filter(|row| row.execution == execution) else { return Ok(()) };
        if !matches!(row.state, CommandState::Expired | CommandState::Cancelled) {
            return Ok(());
        }
        // A command's ID is the ID of its `command.issued` event; no event has the negated ID.
        let key = command.get().wrapping_neg();
        let known = self.store.find_event(execution, EventId::new(key)).await;
        if known.map_err(ReportError::Store)?.is_some() {
            return Ok(());
        }
        let mut payload = Map::from_iter([("command_id".to_owned(), command.get().into())]);
        payload.extend(late.error.map(|error| ("error".to_owned(), Value::from(error))));
        let said = ReportedEvent {
            event_type: late.event_type.to_owned(),
            step: row.step.clone(),
            status: super::derived_status(late.event_type).to_owned(),
            payload: Some(Value::Object(payload)),
            meta: None,
            worker: Some(Arc::from(worker)),
            key: None,
            columns: None,
        };
        let input = Input::Keep(Box::new(RecordReport { said, id: None, key: Some(key) }));
        match self.journal.submit(execution, input).await {
            // Rejected: the execution has ended for good or was purged.
            Ok(_) | Err(SubmitError::Refused(_)) => Ok(()),
            Err(error) => Err(ReportError::Submit(error)),
        }
    }
}

/// Returns the command that was handed off to the reporting worker.
fn handed_out(accepted: &Accepted, of: CachedExecution) -> Option<LeasedRow> {
    let command = accepted.handed?;
    let event = accepted.events.iter().find(|event| command == event.id.into())?;
    match CommandChange::from_event(event) {
        Some(CommandChange::Insert(row)) => LeasedRow::new(row, event.clone(), of),
        _ => None,
    }
}

/// Recorded part of a late completion.
struct Late {
    event_type: &'static str,
    error: Option<String>,
}

impl Late {
    fn from_outcome(ended: &CommandOutcome) -> Self {
        match &ended.outcome {
            Ok(_) => Self { event_type: types::COMMAND_COMPLETED, error: None },
            Err(failure) => {
                Self { event_type: types::COMMAND_FAILED, error: Some(failure.to_string()) }
            }
        }
    }
}

fn is_too_deep(ended: &CommandOutcome) -> bool {
    let outcome = match &ended.outcome {
        Ok(data) => Some(data),
        Err(failure) => failure.details.as_deref(),
    };
    let written = ended.ctx.values().chain(ended.step.values());
    outcome.into_iter().chain(written).any(|value| is_deeper_than(value, DEPTH_MAX))
}
