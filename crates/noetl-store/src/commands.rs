//! The command rows: what dispatch and claims read.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, CommandState, Event, ExecutionId, Fact, Seq, Timestamp};

use crate::StoreError;

/// One command. Its tool settings are in the log, at `issued`, and are not kept twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// The command: the id of its `command.issued`.
    pub id: CommandId,
    /// Its execution.
    pub execution: ExecutionId,
    /// The place of its `command.issued` in that execution's log.
    pub issued: Seq,
    /// Its step.
    pub step: Arc<str>,
    /// Its tool's kind.
    pub tool: Arc<str>,
    /// Which try it is.
    pub attempt: u32,
    /// Where it stands.
    pub state: CommandState,
    /// Who holds it.
    pub worker: Option<Arc<str>>,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it ended.
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
    /// A new row.
    Insert(CommandRow),
    /// A row moves on.
    Move {
        /// The command.
        id: CommandId,
        /// Where to.
        state: CommandState,
        /// Who holds it from now on; kept when `None`.
        worker: Option<Arc<str>>,
        /// When it ended, for a terminal state.
        ended_at: Option<Timestamp>,
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
            Fact::PlaybookStarted(_)
            | Fact::StepEntered { .. }
            | Fact::TokensDropped { .. }
            | Fact::StepDenied { .. }
            | Fact::StepHeld { .. }
            | Fact::Loop(_)
            | Fact::CommandParked { .. }
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
                Self::Insert(_) | Self::Move { .. } => None,
            });
            match (inserted, &change) {
                (Some(row), Self::Move { state, worker, ended_at, .. }) => {
                    row.go_on(*state, worker.as_ref(), *ended_at);
                }
                (_, Self::Insert(_)) | (None, Self::Move { .. }) => changes.push(change),
            }
        }
        changes
    }

    /// The command it is about.
    pub fn id(&self) -> CommandId {
        match self {
            Self::Insert(row) => row.id,
            Self::Move { id, .. } => *id,
        }
    }
}

/// Reads command rows. [`crate::EventLog::commit`] writes them.
#[async_trait]
pub trait Commands: Send + Sync {
    /// One command.
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError>;

    /// Commands that are not terminal, with an id above `after`, oldest first.
    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError>;

    /// How many commands wait for a worker.
    async fn waiting_commands(&self) -> Result<u64, StoreError>;
}
