//! Inputs that are decided again: another process moved their execution meanwhile, or it is not
//! known whether their commit was kept.

use noetl_engine::Input;
use noetl_model::ExecutionId;

use super::batch::Reply;
use super::{Job, StartOf, SubmitError};

/// How often an input is decided before it is given up. Past the second time its execution is held
/// while it is decided, so only a store that keeps failing gets near this.
const TRIES_MAX: u32 = 8;

/// An input as it came.
pub(super) struct Again {
    pub(super) input: Input,
    pub(super) start: Option<StartOf>,
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
        match reply.again {
            Some(again) if again.tries < TRIES_MAX => {
                let Again { input, start, tries } = *again;
                jobs.push(Job {
                    execution,
                    input,
                    start,
                    slot: None,
                    tries: tries + 1,
                    reply: reply.to,
                });
            }
            // A caller that went away needs no answer.
            _ => {
                let _ = reply.to.send(Err(error.clone()));
            }
        }
    }
    jobs
}
