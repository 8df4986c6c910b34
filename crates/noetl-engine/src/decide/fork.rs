//! Begin with the past of another execution.
//!
//! Its decided events are recorded again under new ids, as far as they are over; what was under way
//! at the cut is handed out anew. Times are the present's: what had a limit has all of it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::event::{ForkedFrom, Issued, Started};
use noetl_model::{
    CommandId, DEPTH_MAX, Event, EventId, Fact, Map, Seq, Timestamp, is_deeper_than,
};

use super::start::{self, merge};
use super::{Draft, Fork, Refusal, Start};
use crate::execution::{Execution, Status};
use crate::fork::last_rest;

pub(super) fn decide(draft: &mut Draft<'_, '_>, input: &Fork) -> Result<(), Refusal> {
    if draft.state.status != Status::Absent {
        return Err(Refusal::AlreadyStarted);
    }
    let first = input.log.first();
    let Some(Fact::PlaybookStarted(started)) = first.map(|event| &event.fact) else {
        return Err(Refusal::NotFound);
    };
    let mut workload = started.workload.clone();
    merge(&mut workload, &input.workload);
    if workload.values().any(|value| is_deeper_than(value, DEPTH_MAX)) {
        let message = format!("the workload nests more than {DEPTH_MAX} levels deep");
        return Err(Refusal::Workload(message));
    }
    match last_rest(&input.log, input.cut) {
        Some(last) => {
            take_over(draft, &input.log[..=last], started, workload);
            Ok(())
        }
        None => begin_anew(draft, &input.log[0], started, workload),
    }
}

/// Nothing had come of it yet: it begins once more with the same workload.
fn begin_anew(
    draft: &mut Draft<'_, '_>,
    first: &Event,
    started: &Started,
    payload: Map,
) -> Result<(), Refusal> {
    let forked = ForkedFrom { execution: first.execution, seq: Seq::START, event: EventId::new(0) };
    let start = Start {
        catalog: started.catalog,
        path: started.path.clone(),
        version: started.version,
        payload,
        parent: None,
        pool: started.pool.clone(),
        parent_command: None,
        returns: started.returns.clone(),
        depth: started.depth,
        forked: Some(forked),
    };
    start::decide(draft, start)
}

fn take_over(draft: &mut Draft<'_, '_>, past: &[Event], started: &Started, workload: Map) {
    let (Some(first), Some(last)) = (past.first(), past.last()) else { return };
    let mut origin = Execution::absent(first.execution);
    past.iter().for_each(|event| origin.apply(event));
    let now = draft.moment.now;
    let forked = ForkedFrom { execution: first.execution, seq: last.seq, event: last.id };
    draft.record(Fact::PlaybookStarted(Box::new(Started {
        workload,
        // Whoever started the other waits for the other.
        parent: None,
        parent_command: None,
        deadline: started.deadline.map(|limit| now.plus(limit.since(first.at))),
        forked: Some(forked),
        ..started.clone()
    })));
    let mut copy = Copy { origin: &origin, now, ids: BTreeMap::new() };
    for event in &past[1..] {
        if let Some(fact) = copy.of(event) {
            let is_issue = matches!(fact, Fact::CommandIssued(_));
            let id = draft.record(fact);
            if is_issue {
                copy.ids.insert(event.id.into(), id.into());
            }
        }
    }
    let answered: Vec<(CommandId, Arc<Issued>)> =
        draft.state.open_commands().map(|(id, open)| (id, open.issued.clone())).collect();
    let under_way = origin.open_commands().filter(|(_, open)| open.answer.is_none());
    for (_, open) in under_way {
        let issued = Arc::new(Issued { attempt: 1, ..(*open.issued).clone() });
        let claims = issued.item.as_ref().is_some_and(|item| item.claims);
        let command: CommandId = draft.record(Fact::CommandIssued(issued.clone())).into();
        if draft.is_own(&issued.step) && !claims {
            draft.hold_own(command, &issued, None);
        }
    }
    let loops: Vec<(Arc<str>, u32)> = draft.state.loops.keys().cloned().collect();
    for (step, generation) in loops {
        draft.advance_loop(&step, generation);
    }
    for (command, issued) in answered {
        if draft.state.open_command(command).is_some() {
            draft.completed(command, &issued);
        }
    }
    draft.settle();
}

/// What an event of another execution becomes here.
struct Copy<'o> {
    /// The other execution at the cut.
    origin: &'o Execution,
    now: Timestamp,
    /// Commands there and here.
    ids: BTreeMap<CommandId, CommandId>,
}

impl Copy<'_> {
    /// The fact to record; none for what was only said, and for what is handed out anew.
    fn of(&self, event: &Event) -> Option<Fact> {
        let mut fact = event.fact.clone();
        match &mut fact {
            Fact::CommandIssued(_) => {
                let open = self.origin.open_command(event.id.into());
                if open.is_some_and(|open| open.answer.is_none()) {
                    return None;
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
            Fact::StepEntered { step, generation, deadline, .. } => {
                let visit = (step.clone(), *generation);
                let goes_on = self.origin.running.contains_key(&visit);
                let limit = deadline.filter(|_| goes_on);
                *deadline = limit.map(|limit| self.now.plus(limit.since(event.at)));
            }
            Fact::StepHeld { until, .. } => *until = self.now.plus(until.since(event.at)),
            // What is parked and not over is handed out anew, and begins anew what it waits for.
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
