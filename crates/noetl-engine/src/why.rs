//! Lists the conditions an execution waits for. Derived from pending work, so an execution that has
//! not ended always waits for something.

use std::sync::Arc;

use noetl_model::event::ParkReason;
use noetl_model::{CommandId, CommandState, ExecutionId, Timestamp};

use crate::execution::{Execution, OpenCommand, Status};

/// A condition that an execution waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingWait {
    /// Step of the command, token, or loop that waits.
    pub step: Arc<str>,
    /// Command that waits; `None` for tokens and loops.
    pub command: Option<CommandId>,
    /// Index of the command's item in a loop.
    pub item: Option<u32>,
    /// Time since which it waits; `None` if unknown, as for tokens.
    pub since: Option<Timestamp>,
    pub awaited: WaitKind,
}

/// Kind of condition an execution waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitKind {
    /// A worker that claims the command.
    Worker {
        /// Kind of the command's tool.
        tool: Arc<str>,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The report of the worker that holds the command.
    Report {
        worker: Arc<str>,
        /// Whether the worker reported that it started the command.
        began: bool,
        /// Whether the worker was asked to stop, because the execution is failing.
        stopping: bool,
    },
    Time {
        until: Timestamp,
        /// Whether the wait is a backoff before the next attempt.
        retries: bool,
    },
    /// The end of a child execution.
    Child {
        execution: ExecutionId,
        /// Time at which the command stops waiting.
        until: Option<Timestamp>,
    },
    Answer {
        /// Time at which the command stops waiting.
        until: Timestamp,
    },
    /// Variables for which the step admits a token.
    Admission {
        /// Time at which the token is denied.
        until: Timestamp,
    },
    /// Other arcs that lead to the same step.
    Arcs {
        /// Steps whose arcs have arrived.
        arrived: Vec<Arc<str>>,
    },
    /// Items of a loop that have not ended.
    Items {
        /// Number of items; `None` for a cursor.
        total: Option<u32>,
        ended: u32,
        /// Number of items in flight.
        open: u32,
        /// Number of claims of rows in flight.
        claims: u32,
    },
}

/// Returns the conditions an execution waits for: commands first, oldest first. Empty if the
/// execution has ended.
pub fn pending_waits(state: &Execution) -> Vec<PendingWait> {
    if state.status != Status::Running {
        return Vec::new();
    }
    let stopping = state.is_failing();
    let commands = state.open_commands().map(|(id, open)| PendingWait {
        step: open.issued.step.clone(),
        command: Some(id),
        item: open.issued.item.as_ref().map(|item| item.index),
        since: (open.since != Timestamp::default()).then_some(open.since),
        awaited: awaited(open, stopping),
    });
    let plain = |step: &Arc<str>, awaited| PendingWait {
        step: step.clone(),
        command: None,
        item: None,
        since: None,
        awaited,
    };
    let admissions = state.held.iter().flat_map(|(step, tokens)| {
        let admission = |until| plain(step, WaitKind::Admission { until });
        tokens.iter().map(move |token| admission(token.until)).collect::<Vec<_>>()
    });
    let joins = state
        .waiting
        .iter()
        .map(|(step, arrived)| plain(step, WaitKind::Arcs { arrived: arrived.clone() }));
    let loops = state.loops.iter().map(|((step, _), repeat)| {
        let counters = &repeat.counters;
        let ended = counters.done + counters.failed + counters.skipped;
        let (total, open, claims) = (counters.total, counters.open, counters.claims);
        plain(step, WaitKind::Items { total, ended, open, claims })
    });
    commands.chain(admissions).chain(joins).chain(loops).collect()
}

fn awaited(open: &OpenCommand, stopping: bool) -> WaitKind {
    match (&open.parked, &open.worker) {
        (Some(ParkReason::Until(until)), _) => WaitKind::Time { until: *until, retries: false },
        (Some(ParkReason::Retry(until)), _) => WaitKind::Time { until: *until, retries: true },
        (Some(ParkReason::Child(child)), _) => {
            WaitKind::Child { execution: child.execution, until: child.until }
        }
        (Some(ParkReason::Callback(callback)), _) => WaitKind::Answer { until: callback.until },
        (None, Some(worker)) => WaitKind::Report {
            worker: worker.clone(),
            began: open.state == CommandState::Running,
            stopping,
        },
        (None, None) => {
            WaitKind::Worker { tool: open.issued.tool.clone(), attempt: open.issued.attempt }
        }
    }
}
