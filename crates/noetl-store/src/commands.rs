//! Command rows, which dispatch and claims read.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::command::DEFAULT_POOL;
use noetl_model::event::ParkReason;
use noetl_model::{CommandId, CommandState, Event, ExecutionId, Fact, Seq, Timestamp};

use crate::StoreError;
use crate::command_leases::{CommandFilter, lease_in, limit_ms};

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
    /// Moves the row to `state`, or leaves it unchanged if it has already reached that stage.
    pub fn advance(
        &mut self,
        state: CommandState,
        worker: Option<&Arc<str>>,
        ended_at: Option<Timestamp>,
    ) {
        if stage(self.state) < stage(state) {
            self.state = state;
            self.worker = worker.cloned().or_else(|| self.worker.take());
            self.ended_at = ended_at;
        }
    }
}

/// Returns the stage of a state. A row only ever moves to a later stage, so a terminal row stays
/// terminal, and a claim recorded after the start does not undo the start.
pub const fn stage(state: CommandState) -> u8 {
    match state {
        CommandState::Pending => 0,
        CommandState::Claimed => 1,
        CommandState::Running => 2,
        CommandState::Completed
        | CommandState::Failed
        | CommandState::Cancelled
        | CommandState::Expired => 3,
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
        let held = |command: &CommandId, state, worker: &Arc<str>| {
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
                held(command, CommandState::Claimed, worker)
            }
            Fact::CommandStarted { command, worker, .. } => {
                held(command, CommandState::Running, worker)
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

    /// Returns the net effect of one append on command rows: a row that is inserted and moved in
    /// the same transaction is written once, in its final state.
    pub fn of_all<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Self> {
        let mut changes: Vec<Self> = Vec::new();
        for change in events.into_iter().filter_map(Self::from_event) {
            let inserted = changes.iter_mut().find_map(|known| match known {
                Self::Insert(row) if row.id == change.id() => Some(row),
                Self::Insert(_) | Self::Move { .. } | Self::Release { .. } => None,
            });
            match (inserted, &change) {
                (Some(row), Self::Move { state, worker, ended_at, .. }) => {
                    row.advance(*state, worker.as_ref(), *ended_at);
                }
                // A command that is inserted and parked here has no lease, unless a worker holds
                // it.
                (Some(row), Self::Release { .. })
                    if lease_in(row.state, row.worker.as_deref()).is_none() => {}
                (_, Self::Insert(_) | Self::Release { .. }) | (None, Self::Move { .. }) => {
                    changes.push(change);
                }
            }
        }
        changes
    }

    /// Returns the ID of the command to change.
    pub fn id(&self) -> CommandId {
        match self {
            Self::Insert(row) => row.id,
            Self::Move { id, .. } | Self::Release { id } => *id,
        }
    }
}

/// Reads command rows. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait CommandStore: Send + Sync {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError>;

    /// Returns commands that are not terminal, with an ID above `after`, oldest first.
    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// Returns pending commands that match the filter, oldest first.
    async fn pending_commands(
        &self,
        wanted: &CommandFilter,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// Returns the number of pending commands by pool, in byte order. Omits pools without any.
    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError>;
}
