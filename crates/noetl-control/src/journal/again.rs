//! Inputs that are decided again: another process moved their execution meanwhile, or it is not
//! known whether their commit was kept.

use std::sync::Arc;

use noetl_engine::Input;
use noetl_model::{EventId, ExecutionId};

use super::batch::Reply;
use super::writer::Writer;
use super::{Elsewhere, Job, StartOf, SubmitError};

/// How often an input is decided before it is given up. Past the second time its execution is held
/// while it is decided, so only a store that keeps failing gets near this.
const TRIES_MAX: u32 = 8;

/// An input as it came.
pub(super) struct Again {
    pub(super) input: Input,
    pub(super) start: Option<StartOf>,
    pub(super) first_id: Option<EventId>,
    pub(super) elsewhere: Option<Elsewhere>,
    pub(super) tries: u32,
}

/// Sorts out who is answered with `error`, and what is decided once more instead.
pub(super) fn decide_again(
    execution: ExecutionId,
    replies: Vec<Reply>,
    error: &SubmitError,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    for reply in replies {
        let Again { input, start, first_id, elsewhere, tries } = *reply.again;
        if tries >= TRIES_MAX {
            // A caller that disconnected needs no response.
            let _ = reply.to.send(Err(error.clone()));
            continue;
        }
        jobs.push(Job {
            execution,
            input,
            start,
            first_id,
            slot: None,
            elsewhere,
            tries: tries + 1,
            reply: reply.to,
        });
    }
    jobs
}

impl Writer {
    /// Copies an input that may have to be decided again: another process may append first, or what
    /// it was decided on may not be committed.
    pub(super) fn remember(job: &Job) -> Box<Again> {
        let Job { input, start, first_id, elsewhere, tries, .. } = job;
        Box::new(Again {
            input: input.clone(),
            start: start.clone(),
            first_id: *first_id,
            elsewhere: elsewhere.clone(),
            tries: *tries,
        })
    }

    /// Whether this is a report that was kept before, or is about to be.
    pub(super) async fn is_repeated(&mut self, job: &Job) -> Result<bool, SubmitError> {
        let Some(id) = report_id(&job.input).or(job.first_id) else { return Ok(false) };
        if self.reported.contains(&(job.execution, id)) {
            return Ok(true);
        }
        if job.tries == 0 {
            // Whoever took the report has looked for it in the store.
            return Ok(false);
        }
        let found = self.parts.store.find_event(job.execution, id).await;
        Ok(found.map_err(|error| SubmitError::Store(Arc::new(error)))?.is_some())
    }
}

/// The id by which a repeat of this report is known.
pub(super) fn report_id(input: &Input) -> Option<EventId> {
    match input {
        Input::Keep(keep) => keep.id,
        _ => None,
    }
}
