//! Rows of commands: what stores write about a command beside the event log.
//!
//! A row is a fold over the events of its command. The engine computes the net changes of an append,
//! stores write them, and log verification repeats the fold.

use std::sync::Arc;

use crate::command::{DEFAULT_POOL, is_remote_worker};
use crate::event::ParkReason;
use crate::{CommandId, CommandState, Event, ExecutionId, Fact, Seq, Timestamp};

/// Maximum timeout, in milliseconds, so that no sum of times overflows.
const TIMEOUT_MAX: u64 = 366 * 24 * 3600 * 1000;

/// Converts a tool's timeout to the value stored in a row, in milliseconds.
fn limit_ms(timeout_ms: Option<u64>) -> Option<i64> {
    timeout_ms.map(|ms| i64::try_from(ms.min(TIMEOUT_MAX)).unwrap_or(i64::MAX))
}

/// A command. Its tool settings are only in the event log, at `issued`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// Command ID: the ID of its `command.issued` event.
    pub id: CommandId,
    pub execution: ExecutionId,
    /// Sequence number of its `command.issued` event in the execution's log.
    pub issued: Seq,
    pub step: Arc<str>,
    pub tool: Arc<str>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Pool whose workers may claim the command.
    pub pool: Arc<str>,
    /// Timeout of the tool, in milliseconds.
    pub limit_ms: Option<i64>,
    pub state: CommandState,
    pub worker: Option<Arc<str>>,
    /// Time the command was issued.
    pub issued_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl CommandRow {
    /// Returns `true` if a remote worker holds the command, under a lease.
    pub fn is_leased(&self) -> bool {
        let is_remote = self.worker.as_deref().is_some_and(is_remote_worker);
        is_remote && matches!(self.state, CommandState::Claimed | CommandState::Running)
    }

    /// Moves the row to `state`, or leaves it unchanged if it has already reached that stage.
    pub fn advance(
        &mut self,
        state: CommandState,
        worker: Option<&Arc<str>>,
        ended_at: Option<Timestamp>,
    ) {
        if self.state.stage() < state.stage() {
            self.state = state;
            self.worker = worker.cloned().or_else(|| self.worker.take());
            self.ended_at = ended_at;
        }
    }
}

/// Change of a command row that an event causes. Every store applies the same rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandChange {
    Insert(CommandRow),
    /// Moves a row to a later state.
    Move {
        id: CommandId,
        state: CommandState,
        /// Worker that holds the command from now on; `None` leaves it unchanged.
        worker: Option<Arc<str>>,
        /// Time the command ended, for a terminal state.
        ended_at: Option<Timestamp>,
    },
    /// Removes the lease of a command that is parked: it waits for an answer, not for a worker.
    Release {
        id: CommandId,
    },
}

impl CommandChange {
    /// Returns the change that `event` causes to its command's row.
    pub fn from_event(event: &Event) -> Option<Self> {
        let ended = |command: &CommandId, state| {
            Some(Self::Move { id: *command, state, worker: None, ended_at: Some(event.at) })
        };
        let assigned = |command: &CommandId, state, worker: &Arc<str>| {
            let worker = Some(worker.clone());
            Some(Self::Move { id: *command, state, worker, ended_at: None })
        };
        match &event.fact {
            Fact::CommandIssued(issued) => Some(Self::Insert(CommandRow {
                id: event.id.into(),
                execution: event.execution,
                issued: event.seq,
                step: issued.step.clone(),
                tool: issued.tool.clone(),
                attempt: issued.attempt,
                pool: issued.pool.clone().unwrap_or_else(|| Arc::from(DEFAULT_POOL)),
                limit_ms: limit_ms(issued.timeout_ms),
                state: CommandState::Pending,
                worker: None,
                issued_at: event.at,
                ended_at: None,
            })),
            Fact::CommandClaimed { command, worker, .. } => {
                assigned(command, CommandState::Claimed, worker)
            }
            Fact::CommandStarted { command, worker, .. } => {
                assigned(command, CommandState::Running, worker)
            }
            Fact::CommandCompleted { command, .. } => ended(command, CommandState::Completed),
            Fact::CommandFailed { command, .. } => ended(command, CommandState::Failed),
            Fact::CommandExpired { command, .. } => ended(command, CommandState::Expired),
            Fact::CommandCancelled { command, .. } => ended(command, CommandState::Cancelled),
            // Commands of the control plane never have a lease.
            Fact::CommandParked { on: ParkReason::Callback(_), command, .. } => {
                Some(Self::Release { id: *command })
            }
            Fact::CommandParked { .. }
            | Fact::PlaybookStarted(_)
            | Fact::StepEntered { .. }
            | Fact::TokensDropped { .. }
            | Fact::StepDenied { .. }
            | Fact::StepHeld { .. }
            | Fact::Loop(_)
            | Fact::CallDone { .. }
            | Fact::CallFailed { .. }
            | Fact::ContextUpdated { .. }
            | Fact::StepExited { .. }
            | Fact::PlaybookCompleted { .. }
            | Fact::PlaybookFailed { .. }
            | Fact::PlaybookCancelled { .. }
            | Fact::SubscriptionMoved(_)
            | Fact::Reported(_)
            | Fact::Imported(_) => None,
        }
    }

    /// Returns the net changes of these events: a row that is inserted and moved is written once, in
    /// its final state.
    pub fn of_all<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Self> {
        let mut changes = Vec::new();
        for change in events.into_iter().filter_map(Self::from_event) {
            change.add_to(&mut changes);
        }
        changes
    }

    /// Adds the change to earlier ones of the same append, as a net change. Returns `true` if it
    /// changes a row that they insert.
    pub fn add_to(self, changes: &mut Vec<Self>) -> bool {
        // Commands usually move soon after they were inserted.
        let inserted = changes.iter_mut().rev().find_map(|known| match known {
            Self::Insert(row) if row.id == self.id() => Some(row),
            Self::Insert(_) | Self::Move { .. } | Self::Release { .. } => None,
        });
        let is_inserted = inserted.is_some();
        match (inserted, self) {
            (Some(row), Self::Move { state, worker, ended_at, .. }) => {
                row.advance(state, worker.as_ref(), ended_at);
            }
            // A command that is inserted and parked here has no lease, unless a worker holds it.
            (Some(row), Self::Release { .. }) if !row.is_leased() => {}
            (_, change) => changes.push(change),
        }
        is_inserted
    }

    /// Returns the ID of the command to change.
    pub fn id(&self) -> CommandId {
        match self {
            Self::Insert(row) => row.id,
            Self::Move { id, .. } | Self::Release { id } => *id,
        }
    }
}
