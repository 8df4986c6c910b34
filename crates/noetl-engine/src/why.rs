//! What an execution waits for. Derived from what is outstanding, so that one which is not over
//! always waits for something.

use std::sync::Arc;

use noetl_model::event::Parked;
use noetl_model::{CommandId, CommandState, ExecutionId, Timestamp};

use crate::execution::{Execution, OpenCommand, Status};

/// One thing an execution waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Outstanding {
    /// The step it is about.
    pub step: Arc<str>,
    /// The command that waits, if one does.
    pub command: Option<CommandId>,
    /// The place of its item in a loop.
    pub item: Option<u32>,
    /// Since when; not known for tokens.
    pub since: Option<Timestamp>,
    pub awaited: Awaited,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Awaited {
    /// A worker that takes the command.
    Worker {
        /// The kind of its tool.
        tool: Arc<str>,
        /// Which try it is.
        attempt: u32,
    },
    /// The report of the worker that has it.
    Report {
        worker: Arc<str>,
        /// Whether it said that it began.
        began: bool,
        /// Whether it is told to stop, because the execution fails.
        stopping: bool,
    },
    Time {
        until: Timestamp,
        /// Whether it is a pause before another try.
        retries: bool,
    },
    /// The end of an execution it started.
    Child {
        execution: ExecutionId,
        /// When it stops waiting.
        until: Option<Timestamp>,
    },
    Answer {
        /// When it stops waiting.
        until: Timestamp,
    },
    /// Variables that let a token in.
    Admission {
        /// When it is refused.
        until: Timestamp,
    },
    /// Other arcs that lead to the same step.
    Arcs {
        /// The steps whose arcs have arrived.
        arrived: Vec<Arc<str>>,
    },
    /// Items of a loop that have not ended.
    Items {
        /// How many there are, if that is known.
        total: Option<u32>,
        ended: u32,
        /// Those that are under way.
        open: u32,
        /// Claims of rows that are under way.
        claims: u32,
    },
}

/// Everything an execution waits for, commands first, oldest first; nothing when it is over.
pub fn outstanding(state: &Execution) -> Vec<Outstanding> {
    if state.status != Status::Running {
        return Vec::new();
    }
    let stopping = state.is_failing();
    let commands = state.open_commands().map(|(id, open)| Outstanding {
        step: open.issued.step.clone(),
        command: Some(id),
        item: open.issued.item.as_ref().map(|item| item.index),
        since: (open.since != Timestamp::default()).then_some(open.since),
        awaited: awaited(open, stopping),
    });
    let plain = |step: &Arc<str>, awaited| Outstanding {
        step: step.clone(),
        command: None,
        item: None,
        since: None,
        awaited,
    };
    let held = state.held.iter().flat_map(|(step, tokens)| {
        let admission = |until| plain(step, Awaited::Admission { until });
        tokens.iter().map(move |token| admission(token.until)).collect::<Vec<_>>()
    });
    let joins = state
        .waiting
        .iter()
        .map(|(step, arrived)| plain(step, Awaited::Arcs { arrived: arrived.clone() }));
    let loops = state.loops.iter().map(|((step, _), repeat)| {
        let counters = &repeat.counters;
        let ended = counters.done + counters.failed + counters.skipped;
        let (total, open, claims) = (counters.total, counters.open, counters.claims);
        plain(step, Awaited::Items { total, ended, open, claims })
    });
    commands.chain(held).chain(joins).chain(loops).collect()
}

fn awaited(open: &OpenCommand, stopping: bool) -> Awaited {
    match (&open.parked, &open.worker) {
        (Some(Parked::Until(until)), _) => Awaited::Time { until: *until, retries: false },
        (Some(Parked::Retry(until)), _) => Awaited::Time { until: *until, retries: true },
        (Some(Parked::Child(child)), _) => {
            Awaited::Child { execution: child.execution, until: child.until }
        }
        (Some(Parked::Callback(callback)), _) => Awaited::Answer { until: callback.until },
        (None, Some(worker)) => Awaited::Report {
            worker: worker.clone(),
            began: open.state == CommandState::Running,
            stopping,
        },
        (None, None) => {
            Awaited::Worker { tool: open.issued.tool.clone(), attempt: open.issued.attempt }
        }
    }
}
