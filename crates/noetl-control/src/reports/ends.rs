//! How commands ended, as our workers elsewhere say it: answer, variables and end at once.
//!
//! A worker of ours says everything in one word, so that the log gets what it would have got from a
//! worker in this process. It has put marks in the place of the secrets it was given, because it
//! knows them whichever server gave them; what this process knows is looked for once more.

use std::sync::Arc;

use noetl_engine::{Complete, Fail, Input, Keep};
use noetl_model::event::{BlobRef, Reported};
use noetl_model::row::types;
use noetl_model::{
    CommandId, CommandState, DEPTH_MAX, EventId, ExecutionId, Map, Tenant, Value, is_deeper_than,
};
use noetl_store::Digest;

use super::{ReportError, Reports};
use crate::journal::SubmitError;
use crate::local::Ended;
use crate::workers::Scope;

/// How one command ended.
#[derive(Debug)]
pub struct End {
    /// Its execution.
    pub execution: ExecutionId,
    /// The command.
    pub command: CommandId,
    /// How it ended. With a reference the data are its small fields.
    pub ended: Ended,
    /// Where its result is kept, when that is too large for the log.
    pub reference: Option<BlobRef>,
}

/// What became of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndTaken {
    /// It counts.
    Counts,
    /// The command was over, or is nobody's: nothing has changed.
    Late,
}

impl Reports {
    /// Takes how a command ended. A repeat is late, and harmless.
    pub async fn take_end(
        &self,
        scope: &Scope,
        worker: &str,
        end: End,
    ) -> Result<EndTaken, ReportError> {
        let End { execution, command, mut ended, reference } = end;
        if is_too_deep(&ended) {
            return Err(ReportError::TooDeep);
        }
        let Some(tenant) = self.tenant_of(execution).await? else { return Ok(EndTaken::Late) };
        if scope.as_ref().is_some_and(|scope| *scope != tenant) {
            return Ok(EndTaken::Late);
        }
        self.redaction.ended(&tenant, &mut ended);
        let reference = match reference {
            Some(reference) => Some(self.kept(reference).await?),
            None => None,
        };
        let late = Late::of(&ended);
        let input = self.input(command, ended, reference).await?;
        match self.journal.submit(execution, input).await {
            Ok(accepted) if !accepted.events.is_empty() => Ok(EndTaken::Counts),
            Ok(_) | Err(SubmitError::Refused(_)) => {
                self.note_late(execution, command, worker, late).await?;
                Ok(EndTaken::Late)
            }
            Err(error) => Err(ReportError::Submit(error)),
        }
    }

    async fn input(
        &self,
        command: CommandId,
        ended: Ended,
        reference: Option<Arc<BlobRef>>,
    ) -> Result<Input, ReportError> {
        let Ended { outcome, ctx, step } = ended;
        let mut data = match outcome {
            Ok(data) => data,
            Err(failure) => return Ok(Input::Fail(Fail { command, failure, ctx, step })),
        };
        let reference = match reference {
            Some(reference) => Some(reference),
            None => self.results.keep(&mut data).await.map_err(ReportError::Submit)?,
        };
        let (data, is_final) = (Some(data), true);
        Ok(Input::Complete(Complete { command, data, reference, is_final, ctx, step }))
    }

    /// A reference to content that is there, and stays until the log names it.
    async fn kept(&self, reference: BlobRef) -> Result<Arc<BlobRef>, ReportError> {
        let missing = || ReportError::NoContent(reference.digest.to_string());
        let digest: Digest = reference.digest.parse().map_err(|_| missing())?;
        match self.results.touch(digest).await.map_err(ReportError::Submit)? {
            true => Ok(Arc::new(reference)),
            false => Err(missing()),
        }
    }

    /// Keeps, once, what was said of a command that somebody else was given meanwhile, or that was
    /// not wanted any more. What was said twice of one that ended as said is a repeat.
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
        // The id of the command is that of its `command.issued`; its opposite is nobody's.
        let key = command.get().wrapping_neg();
        let known = self.store.find_event(execution, EventId::new(key)).await;
        if known.map_err(ReportError::Store)?.is_some() {
            return Ok(());
        }
        let mut payload = Map::from_iter([("command_id".to_owned(), command.get().into())]);
        payload.extend(late.error.map(|error| ("error".to_owned(), Value::from(error))));
        let said = Reported {
            event_type: late.event_type.to_owned(),
            step: row.step.clone(),
            status: super::derived_status(late.event_type).to_owned(),
            payload: Some(Value::Object(payload)),
            meta: None,
            worker: Some(Arc::from(worker)),
            key: None,
        };
        let input = Input::Keep(Box::new(Keep { said, id: None, key: Some(key) }));
        match self.journal.submit(execution, input).await {
            // Refused: the execution is over for good, or gone.
            Ok(_) | Err(SubmitError::Refused(_)) => Ok(()),
            Err(error) => Err(ReportError::Submit(error)),
        }
    }

    async fn tenant_of(&self, execution: ExecutionId) -> Result<Option<Tenant>, ReportError> {
        if let Some(tenant) = self.tenants.get(execution) {
            return Ok(Some(tenant));
        }
        let found = self.store.tenant_of(execution).await.map_err(ReportError::Store)?;
        if let Some(tenant) = &found {
            self.tenants.put(execution, tenant.clone());
        }
        Ok(found)
    }
}

/// What is kept of an end that changes nothing.
struct Late {
    event_type: &'static str,
    error: Option<String>,
}

impl Late {
    fn of(ended: &Ended) -> Self {
        match &ended.outcome {
            Ok(_) => Self { event_type: types::COMMAND_COMPLETED, error: None },
            Err(failure) => {
                Self { event_type: types::COMMAND_FAILED, error: Some(failure.to_string()) }
            }
        }
    }
}

fn is_too_deep(ended: &Ended) -> bool {
    let outcome = match &ended.outcome {
        Ok(data) => Some(data),
        Err(failure) => failure.details.as_deref(),
    };
    let written = ended.ctx.values().chain(ended.step.values());
    outcome.into_iter().chain(written).any(|value| is_deeper_than(value, DEPTH_MAX))
}
