//! Moves an execution along its graph: entering and leaving steps, joins, and the end.
//!
//! The rules of execution, which modules cite by number:
//!
//! - **R1, start.** Record `playbook_started` with the workload and enter the entry step
//!   (`decide/start.rs`).
//! - **R2, enter a step.** Check admission; a denied entry ends in `step.denied`. Otherwise record
//!   `step.enter` and issue one command or, for a loop, render the collection once and issue
//!   commands up to `max_in_flight` ([`enter`], [`issue`], [`loops`], [`frames`]).
//! - **R3, end of a command.** The first terminal report decides, and the variables that the command
//!   set apply with it. Later reports change nothing. A loop issues its next item or ends
//!   (`decide/complete.rs`, `decide/fail.rs`, [`loops`]).
//! - **R4, exit a step.** Bind the result, apply `set`, evaluate the arcs once, apply the `set` of
//!   the arcs taken, and record it all in `step.exit` ([`exit`]).
//! - **R5, taken arcs.** A back arc enters its target at once. Any other arc leaves a join token at
//!   its target ([`join`]).
//! - **R6, join.** A step with tokens is entered, and consumes them all, once no running step and no
//!   other step with tokens can still reach it. `join: each` and `join: any` enter earlier
//!   ([`join`]).
//! - **R7, failure.** With fail-fast, only the final step is still entered, running commands are
//!   stopped, and `playbook.failed` follows the last of them, or 30 s later. With best effort, the
//!   failed step takes no arc and the execution fails when all other work has ended ([`settle`]).
//! - **R8, end.** With nothing running, waiting, or timed, record `playbook.completed` with the
//!   result ([`settle`]).
//!
//! Control-plane tools are in [`control_tools`], pipelines that call playbooks in [`split`].

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
