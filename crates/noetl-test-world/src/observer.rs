//! Looks at every append, and at the world it leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use noetl_engine::{Execution, Status, TimerKind, pending_waits};
use noetl_model::event::{ParkReason, StepOutcome};
use noetl_model::row::EventRow;
use noetl_model::{
    CommandId, Event, EventId, ExecutionId, Fact, Failure, FailureKind, Origin, Seq, Tenant,
    Timestamp,
};
use noetl_store::tail::message_id;
use noetl_store::{
    Append, EventLog, ExecutionStatus, ExecutionStore, MemoryStore, TimerRow, TimerStore,
};

use super::stream::Logs;

/// State of one execution, folded from its appended events.
struct Seen {
    state: Execution,
    /// Commands, and whether they are claimed; `None` once they are over.
    commands: BTreeMap<CommandId, Option<bool>>,
    /// Until when commands wait.
    timers: BTreeMap<CommandId, Timestamp>,
    ended: bool,
}

#[derive(Default)]
pub(crate) struct Observer {
    seen: BTreeMap<ExecutionId, Seen>,
    ids: BTreeSet<EventId>,
    labels: BTreeMap<ExecutionId, usize>,
    /// Number of appended events.
    pub(crate) events: u64,
    /// The first thing that was wrong.
    pub(crate) first_wrong: Option<String>,
}

impl Observer {
    pub(crate) fn wrong(&mut self, message: String) {
        self.first_wrong.get_or_insert(message);
    }

    /// An execution by its place among those that began.
    pub(crate) fn label(&mut self, execution: ExecutionId) -> String {
        let next = self.labels.len() + 1;
        format!("x{}", self.labels.entry(execution).or_insert(next))
    }

    /// Records an append, and describes it in one line.
    pub(crate) fn appended(
        &mut self,
        append: &Append,
        now: Timestamp,
        store: &MemoryStore,
    ) -> String {
        let execution = append.row.id;
        let label = self.label(execution);
        let mut words = format!("{label}:");
        let mut seen = self.seen.remove(&execution).unwrap_or_else(|| Seen {
            state: Execution::new(execution),
            commands: BTreeMap::new(),
            timers: BTreeMap::new(),
            ended: false,
        });
        for event in &append.events {
            words.push_str(&in_words(event));
            self.events += 1;
            if !self.ids.insert(event.id) {
                self.wrong(format!("{label}: the id of event {} is used twice", event.seq.0));
            }
            for problem in seen.take(event, now) {
                self.wrong(format!("{label}: {problem}"));
            }
        }
        if let Some(problem) = differs(append, &seen.state) {
            self.wrong(format!("{label}: {problem}"));
        }
        for problem in unsupported(&seen.state, store) {
            self.wrong(format!("{label}: {problem}"));
        }
        self.seen.insert(execution, seen);
        words
    }

    /// Checks that every pending wait of a running execution has something that will end it.
    pub(crate) fn look(&mut self, store: &MemoryStore) {
        let mut problems = Vec::new();
        for (execution, seen) in self.seen.iter().filter(|(_, seen)| !seen.ended) {
            for problem in unsupported(&seen.state, store) {
                problems.push((*execution, problem));
            }
        }
        for (execution, problem) in problems {
            let label = self.label(execution);
            self.wrong(format!("{label}: {problem}"));
        }
    }

    /// Returns the message IDs of the events of every log.
    pub(crate) fn logs(&self, store: &MemoryStore) -> Logs {
        let ids = |execution| {
            let log = log_of(execution, store);
            log.iter().map(|event| message_id(&EventRow::from(event))).collect()
        };
        self.seen.keys().map(|execution| (*execution, ids(*execution))).collect()
    }

    /// Describes the unfinished executions.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        let open = self.seen.iter().filter(|(_, seen)| !seen.ended);
        open.map(|(execution, seen)| {
            let label = self.labels.get(execution).copied().unwrap_or_default();
            let waits: Vec<String> = pending_waits(&seen.state)
                .into_iter()
                .map(|waits| format!("{} {:?}", waits.step, waits.awaited))
                .collect();
            format!("x{label} waits for {}", waits.join(", "))
        })
        .collect()
    }

    /// Checks that every log, read from the beginning, makes the state that was lived through.
    pub(crate) fn replay(&mut self, store: &MemoryStore) {
        let mut problems = Vec::new();
        for (execution, seen) in &self.seen {
            let read = store.read(*execution, Seq::START, usize::MAX).now_or_never();
            let Some(Ok(log)) = read else {
                problems.push((*execution, "its log is not readable".to_owned()));
                continue;
            };
            let mut state = Execution::new(*execution);
            for event in &log {
                state.apply(event);
            }
            if state.to_snapshot() != seen.state.to_snapshot() {
                problems.push((*execution, "its log makes another state".to_owned()));
            }
        }
        for (execution, problem) in problems {
            let label = self.label(execution);
            self.wrong(format!("{label}: {problem}"));
        }
    }

    /// Returns the status of an execution and the number of exits of each step. Returns `None` if a
    /// step of it, or of an execution it called, failed because its workers were lost too often:
    /// runs without faults have no such failure.
    pub(crate) fn outcome(&self, execution: ExecutionId, store: &MemoryStore) -> Option<String> {
        if was_given_up(execution, store) {
            return None;
        }
        let mut steps: BTreeMap<String, usize> = BTreeMap::new();
        for event in log_of(execution, store) {
            if let Fact::StepExited { step, .. } = &event.fact {
                *steps.entry(step.to_string()).or_default() += 1;
            }
        }
        let status = self.seen.get(&execution).map(|seen| seen.state.status());
        match status {
            // What else had time to end before the failure stopped it is a matter of luck.
            Some(Status::Completed) => Some(format!("{status:?} {steps:?}")),
            _ => Some(format!("{status:?}")),
        }
    }
}

impl Seen {
    /// Folds in an event; what is wrong with it.
    fn take(&mut self, event: &Event, now: Timestamp) -> Vec<String> {
        let mut problems = Vec::new();
        let place = event.seq.0;
        if event.seq != self.state.version().next() {
            problems.push(format!("event {place} follows on {}", self.state.version().0));
        }
        if self.ended && event.origin() != Origin::Reported {
            problems.push(format!("event {place} was decided after the end"));
        }
        self.ended |= event.fact.is_end();
        if let Some(problem) = self.command(event, now) {
            problems.push(format!("event {place}: {problem}"));
        }
        self.state.apply(event);
        problems
    }

    /// Follows the life of a command.
    fn command(&mut self, event: &Event, now: Timestamp) -> Option<String> {
        let over = |commands: &mut BTreeMap<_, _>, command: &CommandId, what: &str| match commands
            .insert(*command, None)
        {
            Some(Some(_)) => None,
            Some(None) => Some(format!("command {what} after its end")),
            None => Some(format!("command {what} that was never issued")),
        };
        match &event.fact {
            Fact::CommandIssued(_) => {
                let known = self.commands.insert(event.id.into(), Some(false));
                known.map(|_| "a command was issued twice".to_owned())
            }
            Fact::CommandClaimed { command, .. } => {
                match self.commands.insert(*command, Some(true)) {
                    Some(Some(false)) => None,
                    Some(Some(true)) => Some("a command was claimed twice".to_owned()),
                    _ => Some("a command was claimed that is not open".to_owned()),
                }
            }
            Fact::CommandParked { command, on, .. } => {
                match on {
                    ParkReason::Until(at) | ParkReason::Retry(at) => {
                        self.timers.insert(*command, *at);
                    }
                    ParkReason::Child(_) | ParkReason::Callback(_) => {}
                }
                None
            }
            Fact::CommandCompleted { command, .. } => {
                let due = self.timers.remove(command);
                if due.is_some_and(|due| due > now) {
                    return Some("a timer went off before its time".to_owned());
                }
                over(&mut self.commands, command, "completed")
            }
            Fact::CommandFailed { command, .. } => over(&mut self.commands, command, "failed"),
            Fact::CommandExpired { command, .. } => over(&mut self.commands, command, "expired"),
            Fact::CommandCancelled { command, .. } => {
                over(&mut self.commands, command, "cancelled")
            }
            _ => None,
        }
    }
}

/// Returns the first difference between a row and the state folded from its log.
fn differs(append: &Append, state: &Execution) -> Option<String> {
    let (row, summary) = (&append.row, state.summary());
    let status = match summary.status {
        Status::Absent | Status::Running => ExecutionStatus::Running,
        Status::Completed => ExecutionStatus::Completed,
        Status::Failed => ExecutionStatus::Failed,
        Status::Cancelled => ExecutionStatus::Cancelled,
    };
    let says = (
        (row.status, row.version, row.updated_at, row.ended_at, &row.error),
        (row.steps_entered, row.steps_completed, row.steps_failed, row.steps_running),
        &row.current_step,
    );
    let is = (
        (status, summary.version, summary.updated_at, summary.ended_at, &summary.error),
        (
            summary.steps_entered,
            summary.steps_completed,
            summary.steps_failed,
            summary.steps_running,
        ),
        &summary.current_step,
    );
    (says != is).then(|| format!("its row says {says:?}, its log makes {is:?}"))
}

/// Returns the waits of an execution that nothing will end.
fn unsupported(state: &Execution, store: &MemoryStore) -> Vec<String> {
    if state.status() != Status::Running {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if pending_waits(state).is_empty() {
        problems.push("it is not over, and waits for nothing".to_owned());
    }
    let sent = due_of(store, state.id());
    let is_due = |wanted: &dyn Fn(&TimerKind) -> bool, rows: &[TimerRow]| {
        let kinds = rows.iter().filter_map(|row| serde_json::from_value(row.payload.clone()).ok());
        kinds.into_iter().any(|kind: TimerKind| wanted(&kind))
    };
    for (id, open) in state.open_commands() {
        let wakes =
            |kind: &TimerKind| matches!(kind, TimerKind::Wake { command, .. } if *command == id);
        let is_supported = match open.parked() {
            None => true,
            Some(ParkReason::Until(_) | ParkReason::Retry(_) | ParkReason::Callback(_)) => {
                is_due(&wakes, &sent)
            }
            Some(ParkReason::Child(child)) => {
                let begins = |kind: &TimerKind| matches!(kind, TimerKind::StartChild { command, .. } if *command == id);
                let ends = |kind: &TimerKind| matches!(kind, TimerKind::ChildEnded { command, .. } if *command == id);
                is_due(&begins, &sent)
                    || is_due(&ends, &due_of(store, child.execution))
                    || is_running(store, child.execution)
            }
        };
        if !is_supported {
            problems.push(format!("{} waits, and nothing will wake it", open.issued.step));
        }
    }
    problems
}

/// Whether a step of an execution, or of one that it called, lost its workers too often.
fn was_given_up(execution: ExecutionId, store: &MemoryStore) -> bool {
    let is_lost = |failure: &Failure| failure.kind == FailureKind::WorkerLost;
    log_of(execution, store).iter().any(|event| match &event.fact {
        Fact::CommandFailed { failure, .. }
        | Fact::StepExited { outcome: StepOutcome::Failed { failure, .. }, .. }
        | Fact::PlaybookFailed { failure, .. } => is_lost(failure),
        Fact::CommandParked { on: ParkReason::Child(child), .. } => {
            was_given_up(child.execution, store)
        }
        _ => false,
    })
}

fn log_of(execution: ExecutionId, store: &MemoryStore) -> Vec<Event> {
    let read = store.read(execution, Seq::START, usize::MAX).now_or_never();
    read.and_then(Result::ok).unwrap_or_default()
}

fn due_of(store: &MemoryStore, execution: ExecutionId) -> Vec<TimerRow> {
    let timers = store.timers_of(execution).now_or_never();
    timers.and_then(Result::ok).unwrap_or_default()
}

fn is_running(store: &MemoryStore, execution: ExecutionId) -> bool {
    let execution_row = store.execution(&Tenant::default(), execution).now_or_never();
    let execution_row = execution_row.and_then(Result::ok).flatten();
    execution_row.is_some_and(|row| !row.status.is_final())
}

fn in_words(event: &Event) -> String {
    let row = EventRow::from(event);
    let (name, step) = (row.event_type.unwrap_or_default(), row.node_name.unwrap_or_default());
    format!(" {}.{name}({step})", event.seq.0)
}
