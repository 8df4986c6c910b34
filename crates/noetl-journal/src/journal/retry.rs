//! Inputs that are decided again, because another process appended to their execution first or the
//! outcome of their commit is unknown.

use std::sync::Arc;

use noetl_engine::Input;
use noetl_model::{EventId, ExecutionId};

use super::batch::Reply;
use super::writer::JournalWriter;
use super::{LeaseHolder, NewExecution, QueuedInput, SubmitError};

/// Times an input is decided again before it fails. From the second on, its execution is locked for
/// the decision, so only a store that keeps failing comes near this limit.
const ATTEMPTS_MAX: u32 = 8;

/// Copy of an input as it was submitted.
pub(super) struct RetryableInput {
    pub(super) input: Input,
    pub(super) start: Option<NewExecution>,
    pub(super) first_id: Option<EventId>,
    pub(super) lease_holder: Option<LeaseHolder>,
    pub(super) attempts: u32,
}

/// Returns the inputs to decide again. Callers whose input reached [`ATTEMPTS_MAX`] receive `error`
/// instead.
pub(super) fn requeue_or_fail(
    execution: ExecutionId,
    replies: Vec<Reply>,
    error: &SubmitError,
) -> Vec<QueuedInput> {
    let mut jobs = Vec::new();
    for reply in replies {
        let RetryableInput { input, start, first_id, lease_holder, attempts } = *reply.retry;
        if attempts >= ATTEMPTS_MAX {
            // A caller that disconnected needs no response.
            let _ = reply.to.send(Err(error.clone()));
            continue;
        }
        jobs.push(QueuedInput {
            execution,
            input,
            start,
            first_id,
            slot: None,
            lease_holder,
            attempts: attempts + 1,
            reply: reply.to,
        });
    }
    jobs
}

impl JournalWriter {
    /// Copies an input that may have to be decided again: another process may append first, or the
    /// state it was decided on may not be committed.
    pub(super) fn retry_copy(job: &QueuedInput) -> Box<RetryableInput> {
        let QueuedInput { input, start, first_id, lease_holder, attempts, .. } = job;
        Box::new(RetryableInput {
            input: input.clone(),
            start: start.clone(),
            first_id: *first_id,
            lease_holder: lease_holder.clone(),
            attempts: *attempts,
        })
    }

    /// Returns `true` if the input is a report that was committed before or is in flight.
    pub(super) async fn is_duplicate_report(
        &mut self,
        job: &QueuedInput,
    ) -> Result<bool, SubmitError> {
        let Some(id) = report_id(&job.input).or(job.first_id) else { return Ok(false) };
        if self.reported.contains(&(job.execution, id)) {
            return Ok(true);
        }
        if job.attempts == 0 {
            // The receiver of the report has already searched the store for it.
            return Ok(false);
        }
        let found = self.parts.store.find_event(job.execution, id).await;
        Ok(found.map_err(|error| SubmitError::Store(Arc::new(error)))?.is_some())
    }
}

/// Returns the ID that identifies a resent report.
pub(super) fn report_id(input: &Input) -> Option<EventId> {
    match input {
        Input::Keep(keep) => keep.id,
        _ => None,
    }
}
