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

pub(crate) use split::is_call;
