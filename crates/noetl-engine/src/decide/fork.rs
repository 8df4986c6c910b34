//! Starts an execution with a copy of another execution's event log.
//!
//! The fork records the origin's decided events under new IDs, except those of commands without a
//! result at the cut, which it issues again. Times are relative to the fork: every timeout restarts
//! in full.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::{CommandSpec, ExecutionStart, ForkedFrom};
use noetl_model::trace::Trace;
use noetl_model::{
    CommandId, DEPTH_MAX, Event, EventId, Fact, Map, Seq, Timestamp, is_deeper_than,
};

use super::start::{self, merge};
use crate::decision::Rejection;
use crate::draft::Draft;
use crate::execution::{Execution, OpenCommand, Status};
use crate::fork::last_quiescent_event;
use crate::input::{Fork, StartInput};

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: &Fork) -> Result<(), Rejection> {
    if draft.state.status != Status::Absent {
        return Err(Rejection::AlreadyStarted);
    }
    let first = input.log.first();
    let Some(Fact::PlaybookStarted(started)) = first.map(|event| &event.fact) else {
        return Err(Rejection::NotFound);
    };
    let mut workload = started.workload.clone();
    merge(&mut workload, &input.workload);
    if workload.values().any(|value| is_deeper_than(value, DEPTH_MAX)) {
        let message = format!("the workload nests more than {DEPTH_MAX} levels deep");
        return Err(Rejection::Workload(message));
    }
    let start = start_of(input, &input.log[0], started, workload);
    match last_quiescent_event(&input.log, input.cut) {
        Some(last) => take_over(draft, input, &input.log[..=last], started, start),
        // The origin has no consistent cut at or before the requested one: start over with its
        // workload.
        None => start::decide(draft, start),
    }
}

/// Returns the start of an execution that copies only the origin's workload.
fn start_of(input: &Fork, first: &Event, started: &ExecutionStart, payload: Map) -> StartInput {
    let forked = ForkedFrom { execution: first.execution, seq: Seq::START, event: EventId::new(0) };
    let (catalog, version) = input.version.unwrap_or((started.catalog, started.version));
    StartInput {
        catalog,
        path: started.path.clone(),
        version,
        payload,
        // The origin's parent waits for the origin, not for the fork.
        parent: None,
        pool: started.pool.clone(),
        parent_command: None,
        returns: started.returns.clone(),
        depth: started.depth,
        forked: Some(forked),
        trace: input.trace.clone(),
        actor: input.actor.clone(),
    }
}

fn take_over(
    draft: &mut Draft<'_, '_>,
    input: &Fork,
    past: &[Event],
    started: &ExecutionStart,
    start: StartInput,
) -> Result<(), Rejection> {
    let (Some(first), Some(last)) = (past.first(), past.last()) else { return Ok(()) };
    let mut origin = Execution::new(first.execution);
    past.iter().for_each(|event| origin.apply(event));
    let now = draft.moment.now;
    let forked = ForkedFrom { execution: first.execution, seq: last.seq, event: last.id };
    let is_other = input.version.is_some();
    let (workload, deadline) = match is_other {
        false => (start.payload, started.deadline.map(|limit| now.plus(limit.since(first.at)))),
        // Renders the new version's workload, so values that only this version defines exist from
        // the start.
        true => {
            let deadline = draft.playbook.deadline.map(|limit| now.plus(limit));
            (start::workload(draft, &start)?, deadline)
        }
    };
    draft.actor = start.actor;
    draft.record(Fact::PlaybookStarted(Box::new(ExecutionStart {
        catalog: start.catalog,
        version: start.version,
        workload,
        parent: None,
        parent_command: None,
        deadline,
        forked: Some(forked),
        trace: start.trace,
        ..started.clone()
    })));
    let trace = draft.state.trace();
    let ids = BTreeMap::new();
    let mut copy = Copy { origin: &origin, is_other, now, ids, trace: trace.clone() };
    for event in &past[1..] {
        if let Some(fact) = copy.copied_fact(event) {
            let is_issue = matches!(fact, Fact::CommandIssued(_));
            draft.actor.clone_from(&event.actor);
            let id = draft.record(fact);
            if is_issue {
                copy.ids.insert(event.id.into(), id.into());
            }
        }
    }
    let answered: Vec<(CommandId, Arc<CommandSpec>)> =
        draft.state.open_commands().map(|(id, open)| (id, open.issued.clone())).collect();
    let reissued = origin.open_commands().filter(|(_, open)| is_reissued(open, is_other));
    for (_, open) in reissued {
        if is_other {
            render_anew(draft, &open.issued, past);
            continue;
        }
        let trace = trace.clone();
        let issued = Arc::new(CommandSpec { attempt: 1, trace, ..(*open.issued).clone() });
        let claims = issued.item.as_ref().is_some_and(|item| item.claims);
        let command: CommandId = draft.record(Fact::CommandIssued(issued.clone())).into();
        if draft.is_control_tool(&issued) && !claims {
            draft.claim_control_tool(command, &issued, None);
        }
    }
    let loops: Vec<(Arc<str>, u32)> = draft.state.loops.keys().cloned().collect();
    for (step, run) in loops {
        draft.advance_loop(&step, run);
    }
    for (command, issued) in answered {
        if draft.state.open_command(command).is_some() {
            draft.completed(command, &issued);
        }
    }
    draft.settle();
    Ok(())
}

/// Returns `true` if the fork issues a command of the origin again. Another version of the playbook
/// may split a pipeline at other tasks, so its step run restarts with the first segment.
fn is_reissued(open: &OpenCommand, is_other: bool) -> bool {
    let is_partial = open.issued.split().is_some_and(|split| split.partial);
    open.answer.is_none() || (is_other && is_partial)
}

/// Issues the command of an active step run as rendered by another version of the playbook.
fn render_anew(draft: &mut Draft<'_, '_>, issued: &CommandSpec, past: &[Event]) {
    let playbook = draft.playbook;
    let Some(ix) = playbook.find(&issued.step) else { return };
    let (step, run) = (playbook.step(ix), issued.run);
    match &issued.item {
        Some(item) => draft.reissue_item(step, run, item),
        None => draft.begin_work(step, run, led_there(past, &issued.step, run)),
    }
}

/// Returns the step whose arc led to a step run.
fn led_there(past: &[Event], step: &Arc<str>, run: u32) -> Option<Arc<str>> {
    let entered = past.iter().position(|event| {
        matches!(&event.fact, Fact::StepEntered { step: s, run: g, .. }
            if s == step && *g == run)
    })?;
    past[..entered].iter().rev().find_map(|event| match &event.fact {
        Fact::StepExited { step: from, next, .. } => {
            next.taken.iter().any(|arc| arc.step == *step).then(|| from.clone())
        }
        _ => None,
    })
}

/// Translates events of the origin into facts of the fork.
struct Copy<'o> {
    /// State of the origin at the cut.
    origin: &'o Execution,
    /// Whether the fork continues with another version of the playbook.
    is_other: bool,
    now: Timestamp,
    /// Command IDs of the fork, by command ID of the origin.
    ids: BTreeMap<CommandId, CommandId>,
    /// Trace of the fork's commands.
    trace: Option<Arc<Trace>>,
}

impl Copy<'_> {
    /// Returns the fact to record, or `None` for reported and imported events, for terminal events,
    /// and for commands that the fork issues again.
    fn copied_fact(&self, event: &Event) -> Option<Fact> {
        let mut fact = event.fact.clone();
        match &mut fact {
            Fact::CommandIssued(issued) => {
                let open = self.origin.open_command(event.id.into());
                if open.is_some_and(|open| is_reissued(open, self.is_other)) {
                    return None;
                }
                if issued.trace != self.trace {
                    Arc::make_mut(issued).trace.clone_from(&self.trace);
                }
            }
            Fact::CommandClaimed { command, .. }
            | Fact::CommandStarted { command, .. }
            | Fact::CallDone { command, .. }
            | Fact::CallFailed { command, .. }
            | Fact::CommandCompleted { command, .. }
            | Fact::CommandFailed { command, .. }
            | Fact::CommandExpired { command, .. }
            | Fact::CommandCancelled { command, .. } => *command = *self.ids.get(command)?,
            Fact::StepEntered { step, run, deadline, .. } => {
                let step_run_key = (step.clone(), *run);
                let goes_on = self.origin.running.contains_key(&step_run_key);
                let limit = deadline.filter(|_| goes_on);
                *deadline = limit.map(|limit| self.now.plus(limit.since(event.at)));
            }
            Fact::StepHeld { until, .. } => *until = self.now.plus(until.since(event.at)),
            // The fork issues an open parked command again, and that command parks again.
            Fact::CommandParked { .. }
            | Fact::PlaybookStarted(_)
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_)
            | Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. } => return None,
            Fact::TokensDropped { .. }
            | Fact::StepDenied { .. }
            | Fact::Loop(_)
            | Fact::ContextUpdated { .. }
            | Fact::StepExited { .. } => {}
        }
        Some(fact)
    }
}
