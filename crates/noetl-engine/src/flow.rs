//! How work moves along the graph: entering and leaving steps, joins, and the end.
//!
//! The rules are those of the language: R2 in [`enter`], R4 in [`leave`], R5 and R6 in [`join`],
//! R7 and R8 in [`settle`].

mod enter;
mod join;
mod leave;
mod settle;

use std::sync::Arc;

use noetl_playbook::StepIx;

pub(crate) use leave::counts;

/// A step to enter.
#[derive(Debug)]
pub(crate) struct Activation {
    /// The step.
    pub(crate) step: StepIx,
    /// How many waiting tokens this uses up.
    pub(crate) tokens: u32,
    /// The step whose arc led here.
    pub(crate) from: Option<Arc<str>>,
}
