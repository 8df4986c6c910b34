//! Turns state and one input into a decision: one module per input.

mod abandon;
mod answer;
mod begin;
mod cancel;
mod claim;
mod complete;
mod expire;
mod fail;
mod finalize;
mod fork;
mod keep;
mod start;
mod timeout;
mod wake;

use noetl_playbook::Playbook;

pub use start::merge;

use crate::decision::{Decision, DecisionEnv, Rejection};
use crate::draft::Draft;
use crate::execution::Execution;
use crate::input::{Abandon, Input};
use crate::spans::spans_before;

/// Decides one input: returns the events to append and everything they imply. On `Ok`, the events are
/// folded into the state.
///
/// [`Rejection::Need`] lists every value known to be missing. After the caller loads them, the next
/// call can return `Need` again, because the loaded values may refer to more. The sequence
/// terminates: each attempt reads a value that the previous one could not.
pub fn decide(
    playbook: &Playbook,
    state: &mut Execution,
    input: Input,
    moment: &mut DecisionEnv<'_>,
) -> Result<Decision, Rejection> {
    let ending = moment.traced.then(|| spans_before(state, &input));
    let mut draft = Draft::new(playbook, state, moment);
    match input {
        Input::Start(input) => start::decide(&mut draft, *input)?,
        Input::Fork(input) => fork::decide(&mut draft, &input)?,
        Input::Claim(input) => claim::decide(&mut draft, input)?,
        Input::Begin(input) => begin::decide(&mut draft, input)?,
        Input::Complete(input) => complete::decide(&mut draft, input)?,
        Input::Fail(input) => fail::decide(&mut draft, input)?,
        Input::Expire(input) => expire::decide(&mut draft, input)?,
        Input::Cancel(input) => cancel::decide(&mut draft, input)?,
        Input::Abandon(Abandon) => abandon::decide(&mut draft)?,
        Input::Keep(input) => keep::decide(&mut draft, *input)?,
        Input::Wake(input) => wake::decide(&mut draft, &input)?,
        Input::Answer(input) => answer::decide(&mut draft, *input)?,
        Input::Timeout(input) => timeout::decide(&mut draft, &input)?,
        Input::Finalize(input) => finalize::decide(&mut draft, input)?,
    }
    draft.bound_events();
    draft.finish(ending)
}
