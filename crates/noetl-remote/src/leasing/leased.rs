//! Types of a lease request and its response.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::event::CommandSpec;
use noetl_model::{CommandId, Event, Fact, Tenant};
use noetl_store::{CommandRow, ExecutionRow};

use super::execution_cache::CachedExecution;

/// A long poll of a remote worker.
#[derive(Debug, Clone)]
pub struct LongPoll {
    pub worker: String,
    /// Pool of the worker; the default pool if `None`.
    pub pool: Option<String>,
    /// Tool kinds the worker supports; all if `None`.
    pub kinds: Option<Vec<String>>,
    /// Maximum number of commands to lease, from 1 to `LEASE_BATCH_MAX`.
    pub max: usize,
    /// Time to wait for the first command. Capped at `WAIT_MAX`.
    pub wait: Duration,
    /// Public key of the worker. A different key under the same name is a different process.
    pub public_key: Option<String>,
}

/// A command leased to a remote worker.
#[derive(Debug, Clone)]
pub struct LeasedRow {
    /// Row of the command before the claim.
    pub row: CommandRow,
    /// The `command.issued` event of the command.
    pub event: Arc<Event>,
    pub issued: Arc<CommandSpec>,
    of: CachedExecution,
}

impl LeasedRow {
    pub(crate) fn new(row: CommandRow, event: Arc<Event>, of: CachedExecution) -> Option<Self> {
        let Fact::CommandIssued(issued) = &event.fact else { return None };
        Some(Self { row, issued: issued.clone(), event, of })
    }

    pub fn tenant(&self) -> &Tenant {
        &self.of.0
    }

    /// Returns the row of the command's execution. Mutable columns may be stale.
    pub fn execution(&self) -> &ExecutionRow {
        &self.of.1
    }
}

/// Response to a renewal. Commands in neither list remain with the worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenewalResult {
    /// Commands the worker must stop.
    pub cancel: Vec<CommandId>,
    /// Commands the worker no longer holds. Reports about them have no effect.
    pub lost: Vec<CommandId>,
}
