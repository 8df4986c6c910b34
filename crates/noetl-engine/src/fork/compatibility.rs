//! Checks whether another version of a playbook can continue a copied event log.
//!
//! Work that has ended does not matter. Only work in flight at the cut must exist in the other
//! version; otherwise the fork would wait for it forever.

use std::fmt;
use std::sync::Arc;

use noetl_model::{Event, Seq};
use noetl_playbook::Playbook;
use noetl_playbook::document::{LoopExec, LoopSource};

use super::last_quiescent_event;
use crate::execution::Execution;

/// Reason that a version cannot continue an event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatibility {
    pub step: Arc<str>,
    /// Sequence number of the last event the fork would copy.
    pub seq: Seq,
    pub why: IncompatibilityKind,
}

/// Kind of incompatibility between a step run at the cut and a playbook version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncompatibilityKind {
    /// The step is active, and the version has no such step.
    Gone,
    /// Tokens wait at the step, and the version has no such step.
    GoneWithTokens,
    /// A loop is active, and the step is not a loop in the version.
    NoLoop,
    /// An active loop has recorded items and iterates over a cursor in the version, or the reverse,
    /// or runs within one command in the version.
    OtherLoop,
    /// The step's tool has returned a result, and the step is a loop in the version.
    IsLoop,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, seq, why } = self;
        write!(f, "at event {seq} of the log, ")?;
        match why {
            IncompatibilityKind::Gone => {
                write!(f, "step '{step}' is running, and the version has no such step")
            }
            IncompatibilityKind::GoneWithTokens => {
                write!(f, "tokens wait at step '{step}', and the version has no such step")
            }
            IncompatibilityKind::NoLoop => {
                write!(
                    f,
                    "the loop of step '{step}' is running, and the step is not a loop in the version"
                )
            }
            IncompatibilityKind::OtherLoop => write!(
                f,
                "the loop of step '{step}' is running, and the version iterates over its items in \
                 another way"
            ),
            IncompatibilityKind::IsLoop => {
                write!(
                    f,
                    "the tool of step '{step}' has returned, and the step is a loop in the version"
                )
            }
        }
    }
}

/// Returns the first work in flight at a cut that `playbook` cannot continue, or `None` if it can
/// continue all of it.
pub fn first_incompatibility(
    playbook: &Playbook,
    log: &[Event],
    cut: Seq,
) -> Option<Incompatibility> {
    let last = last_quiescent_event(log, cut)?;
    let mut state = Execution::new(log[0].execution);
    log[..=last].iter().for_each(|event| state.apply(event));
    let seq = log[last].seq;
    let incompatible =
        |step: &Arc<str>, why| Some(Incompatibility { step: step.clone(), seq, why });
    for step_run_key in state.running.keys() {
        let (step, run) = step_run_key;
        let Some(ix) = playbook.find(step) else {
            return incompatible(step, IncompatibilityKind::Gone);
        };
        let now = playbook.step(ix).repeat.as_ref();
        if let Some(repeat) = state.loops.get(step_run_key) {
            let is_cursor = repeat.counters.total.is_none();
            match now {
                None => return incompatible(step, IncompatibilityKind::NoLoop),
                Some(now) => {
                    let is_same = matches!(now.over, LoopSource::Cursor(_)) == is_cursor;
                    if !is_same || now.exec == LoopExec::Local {
                        return incompatible(step, IncompatibilityKind::OtherLoop);
                    }
                }
            }
        } else if now.is_some() {
            let answered = state.commands.values().any(|open| {
                let is_of = open.issued.step == *step && open.issued.run == *run;
                is_of && open.answer.is_some()
            });
            if answered {
                return incompatible(step, IncompatibilityKind::IsLoop);
            }
        }
    }
    let tokens = state.waiting.keys().chain(state.held.keys());
    let mut gone = tokens.filter(|step| playbook.find(step).is_none());
    gone.next().and_then(|step| incompatible(step, IncompatibilityKind::GoneWithTokens))
}
