//! How work moves along the graph: entering and leaving steps, joins, and the end.
//!
//! The rules are those of the language: R2 in [`enter`], [`issue`], [`repeat`] and [`frames`], R4
//! in [`leave`], R5 and R6 in [`join`], R7 and R8 in [`settle`]. What the control plane does without a
//! worker is in [`own`], pipelines that call playbooks are in [`split`].

mod collection;
mod enter;
mod frames;
mod issue;
mod join;
mod leave;
mod limit;
mod named;
mod own;
mod repeat;
mod settle;
mod split;

use std::sync::Arc;

use noetl_playbook::StepIx;

pub(crate) use leave::counts;
pub(crate) use split::is_call;

/// A step to enter.
#[derive(Debug)]
pub(crate) struct Activation {
    pub(crate) step: StepIx,
    /// How many waiting tokens this uses up.
    pub(crate) tokens: u32,
    /// The step whose arc led here.
    pub(crate) from: Option<Arc<str>>,
    /// Whether it waits to be admitted already.
    pub(crate) held: bool,
}
