//! Recovers commands orphaned by other processes on a shared database.
//!
//! Processes notify each other when they release work. A notification can be lost, and a process
//! can die while it holds commands. A periodic scan covers both: it enqueues pending commands
//! unknown to this process and expires commands whose process lease has ended.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Input;
use noetl_identity as identity;
use noetl_model::{CommandId, CommandState};
use noetl_store::{CommandRow, JournalStore, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::dispatch::{Dispatcher, PendingCommand};
use crate::expiry;
use crate::journal::Journal;

/// Scan interval while work is pending and the store delivers no notifications of other processes.
const LOOK_DEAF: Duration = Duration::from_millis(250);

/// Commands read at a time.
const PAGE: usize = 1000;

pub(crate) struct OrphanScanner {
    pub(crate) store: Arc<dyn JournalStore>,
    pub(crate) journal: Journal,
    pub(crate) dispatch: Dispatcher,
    pub(crate) due: Arc<Notify>,
    /// Scan interval while no notification arrives.
    pub(crate) every: Duration,
    pub(crate) closing: CancellationToken,
}

impl OrphanScanner {
    /// Scans periodically, and on notifications of other processes, until the control plane closes.
    pub(crate) async fn run(self) {
        let mut pause = self.every;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Not on every notification: other processes may send one with every commit.
                () = async {
                    tokio::time::sleep(LOOK_DEAF.min(pause)).await;
                    self.store.wait_for_released_work().await;
                    // A process that shuts down releases its timers too.
                    self.due.notify_one();
                } => {}
                () = self.closing.cancelled() => return,
            }
            pause = match self.scan().await {
                // Work is pending, and no notification would announce more.
                Ok(found) if found > 0 && !self.store.receives_notifications() => LOOK_DEAF,
                Ok(_) => self.every,
                Err(error) => {
                    warn!(%error, "orphan scan failed, retrying at next interval");
                    self.every
                }
            };
        }
    }

    /// Enqueues pending commands unknown to this process and expires commands of dead processes.
    /// Returns their number.
    pub(crate) async fn scan(&self) -> Result<usize, StoreError> {
        let mut after = CommandId::new(i64::MIN);
        let mut found = 0;
        let known: HashSet<CommandId> = self.dispatch.waiting();
        loop {
            let open = self.store.open_commands(after, PAGE).await?;
            let Some(last) = open.last() else { return Ok(found) };
            after = last.id;
            let live = identity::alive_after(&*self.store, &open).await?;
            for row in &open {
                match (&row.state, &row.worker) {
                    (CommandState::Pending, _) if !known.contains(&row.id) => {
                        found += 1;
                        self.dispatch
                            .enqueue(PendingCommand { execution: row.execution, command: row.id });
                        self.dispatch.calls().offer(&row.pool, &row.tool, None);
                    }
                    (_, Some(worker)) if identity::is_gone(worker, &live) => {
                        found += 1;
                        self.expire(row).await;
                    }
                    _ => {}
                }
            }
            self.dispatch.wake();
        }
    }

    async fn expire(&self, row: &CommandRow) {
        let input: Input = expiry::expire(row.id, "the process that ran it is gone");
        info!(execution.id = %row.execution, command.id = %row.id, "command's process is gone, expiring command");
        // A command that cannot be expired now is found at the next scan.
        if let Err(error) = self.journal.submit(row.execution, input).await {
            warn!(execution.id = %row.execution, %error, "failed to expire orphaned command, retrying at next scan");
        }
    }
}
