//! The command rows: what dispatch and claims read.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::command::DEFAULT_POOL;
use noetl_model::event::Parked;
use noetl_model::{CommandId, CommandState, Event, ExecutionId, Fact, Seq, Timestamp};

use crate::StoreError;
use crate::holdings::{Wanted, lease_in, limit_ms};

/// One command. Its tool settings are in the log, at `issued`, and are not kept twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// The command: the id of its `command.issued`.
    pub id: CommandId,
    pub execution: ExecutionId,
    /// The place of its `command.issued` in that execution's log.
    pub issued: Seq,
    pub step: Arc<str>,
    pub tool: Arc<str>,
    /// Which try it is.
    pub attempt: u32,
    /// The pool whose workers take it.
    pub pool: Arc<str>,
    /// How long its tool may take, in milliseconds.
    pub limit_ms: Option<i64>,
    pub state: CommandState,
    pub worker: Option<Arc<str>>,
    /// When it was issued.
    pub issued_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl CommandRow {
    /// Moves on to `state`, or stays as it is when it already got that far.
    pub fn go_on(
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

/// How far along a state is. A row only ever moves to a later stage, so a terminal one stays, and
/// a claim that is recorded after the start does not take the start back.
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

/// What an event does to a command row. Every store applies the same rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandChange {
    Insert(CommandRow),
    /// A row moves on.
    Move {
        id: CommandId,
        state: CommandState,
        /// Who holds it from now on; kept when `None`.
        worker: Option<Arc<str>>,
        /// When it ended, for a terminal state.
        ended_at: Option<Timestamp>,
    },
    /// A row is held by nobody who could be lost: it waits for something else than a worker.
    Release {
        id: CommandId,
    },
}

impl CommandChange {
    /// What `event` does to its command's row.
    pub fn of(event: &Event) -> Option<Self> {
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
            // The control plane's own were never leased.
            Fact::CommandParked { on: Parked::Callback(_), command, .. } => {
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

    /// The net effect of one append on command rows: a row that is inserted and moved in the same
    /// transaction is written once, in its final state.
    pub fn of_all<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Self> {
        let mut changes: Vec<Self> = Vec::new();
        for change in events.into_iter().filter_map(Self::of) {
            let inserted = changes.iter_mut().find_map(|known| match known {
                Self::Insert(row) if row.id == change.id() => Some(row),
                Self::Insert(_) | Self::Move { .. } | Self::Release { .. } => None,
            });
            match (inserted, &change) {
                (Some(row), Self::Move { state, worker, ended_at, .. }) => {
                    row.go_on(*state, worker.as_ref(), *ended_at);
                }
                // What is inserted here and parked has no lease yet, unless a worker has it.
                (Some(row), Self::Release { .. })
                    if lease_in(row.state, row.worker.as_deref()).is_none() => {}
                (_, Self::Insert(_) | Self::Release { .. }) | (None, Self::Move { .. }) => {
                    changes.push(change);
                }
            }
        }
        changes
    }

    /// The command it is about.
    pub fn id(&self) -> CommandId {
        match self {
            Self::Insert(row) => row.id,
            Self::Move { id, .. } | Self::Release { id } => *id,
        }
    }
}

/// Reads command rows. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait Commands: Send + Sync {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError>;

    /// Commands that are not terminal, with an id above `after`, oldest first.
    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// Commands that wait for a worker and are wanted, oldest first.
    async fn pending_commands(
        &self,
        wanted: &Wanted,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// How many commands wait for a worker, by pool in byte order; pools without any are left out.
    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError>;
}
