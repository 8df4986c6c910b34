//! Moves an execution along its graph: entering and leaving steps, joins, and the end.
//!
//! The rules are those of the playbook language: R2 in [`enter`], [`issue`], [`repeat`], and
//! [`frames`], R4 in [`leave`], R5 and R6 in [`join`], R7 and R8 in [`settle`]. Control-plane tools
//! are in [`own`], pipelines that call playbooks in [`split`].

mod collection;
mod control_tools;
mod enter;
mod exit;
mod frames;
mod issue;
mod join;
mod loops;
mod render;
mod settle;
mod split;
mod timeouts;

use std::sync::Arc;

use noetl_playbook::StepIx;

pub(crate) use exit::is_considered;
pub(crate) use split::is_call;

/// A step to enter.
#[derive(Debug)]
pub(crate) struct Activation {
    pub(crate) step: StepIx,
    /// Number of waiting tokens that entering the step consumes.
    pub(crate) tokens: u32,
    /// Step whose arc led here; `None` for the first step.
    pub(crate) from: Option<Arc<str>>,
    /// Whether the token already waits for admission.
    pub(crate) held: bool,
}
