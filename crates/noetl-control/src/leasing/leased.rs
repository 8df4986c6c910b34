//! What workers elsewhere ask for, and are given.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::event::Issued;
use noetl_model::{CommandId, Event, Fact, Tenant};
use noetl_store::{CommandRow, ExecutionRow};

use super::known::Of;

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct LeaseRequest {
    pub worker: String,
    /// The pool it is of; the default one when `None`.
    pub pool: Option<String>,
    /// The kinds of tools it has; all when `None`.
    pub kinds: Option<Vec<String>>,
    /// How many commands it takes at most.
    pub max: usize,
    /// How long it waits for the first.
    pub wait: Duration,
    /// Its public key: another one under the same name is another process.
    pub public_key: Option<String>,
}

/// A command that was handed out.
#[derive(Debug, Clone)]
pub struct Leased {
    /// Its row as it was before.
    pub row: CommandRow,
    /// Its `command.issued`.
    pub event: Arc<Event>,
    pub issued: Arc<Issued>,
    of: Of,
}

impl Leased {
    pub(crate) fn new(row: CommandRow, event: Arc<Event>, of: Of) -> Option<Self> {
        let Fact::CommandIssued(issued) = &event.fact else { return None };
        Some(Self { row, issued: issued.clone(), event, of })
    }

    pub fn tenant(&self) -> &Tenant {
        &self.of.0
    }

    /// The row of its execution; what changes of it may be older.
    pub fn of(&self) -> &ExecutionRow {
        &self.of.1
    }
}

/// What a worker is told of the commands it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Not wanted any more: to be stopped.
    pub cancel: Vec<CommandId>,
    /// Held by it no more: whatever it says of them changes nothing.
    pub lost: Vec<CommandId>,
}
