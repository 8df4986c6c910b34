//! Resumes unfinished executions at startup.
//!
//! An unfinished execution always has an open command, so recovery scans the open commands: a
//! command claimed by a process that no longer runs expires at once and is reissued, and a pending
//! command waits for a slot.

use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Input;
use noetl_identity as identity;
use noetl_model::command::is_remote_worker;
use noetl_model::{CommandId, CommandState};
use noetl_store::{CommandRow, JournalStore, Lease, StoreError};
use tracing::{info, warn};

use crate::dispatch::{Dispatcher, PendingCommand};
use crate::expiry::expire;
use crate::journal::{Journal, SubmitError};
use crate::local::LOCAL_WORKER;

/// Delay before an input is resubmitted to a full journal.
const BUSY_REST: Duration = Duration::from_millis(20);

/// Commands read at a time.
const PAGE: usize = 1000;

/// Open commands found at startup.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    pub(crate) open: usize,
    /// Commands leased to remote and published workers.
    pub(crate) remote: Vec<CommandId>,
}

/// Resumes every unfinished execution.
///
/// Considers only commands up to `newest`: commands issued during recovery have larger IDs and
/// belong to this process.
pub(crate) async fn resume(
    store: &dyn JournalStore,
    journal: &Journal,
    dispatch: &Dispatcher,
    newest: CommandId,
) -> Result<Resumed, SubmitError> {
    let failed = |error| SubmitError::Store(Arc::new(error));
    let mut after = CommandId::new(i64::MIN);
    let mut found = Resumed::default();
    loop {
        let mut open = store.open_commands(after, PAGE).await.map_err(failed)?;
        open.retain(|row| row.id <= newest);
        let Some(last) = open.last() else { break };
        after = last.id;
        found.open += open.len();
        let is_remote = |row: &&CommandRow| row.worker.as_deref().is_some_and(is_remote_worker);
        found.remote.extend(open.iter().filter(is_remote).map(|row| row.id));
        let live = identity::alive_after(store, &open).await.map_err(failed)?;
        let resumed = open.iter().map(|row| resume_one(journal, dispatch, &live, row));
        let outcomes = futures::future::join_all(resumed).await;
        for (row, outcome) in open.iter().zip(outcomes) {
            match outcome {
                Ok(()) | Err(SubmitError::Refused(_)) => {}
                Err(SubmitError::Store(error))
                    if !matches!(error.failure(), StoreError::Row(_)) =>
                {
                    return Err(SubmitError::Store(error));
                }
                // An execution that cannot be read must not block the others.
                Err(error) => {
                    warn!(execution.id = %row.execution, %error, "failed to recover execution, skipping");
                }
            }
        }
    }
    if found.open > 0 {
        info!(commands = found.open, "resuming unfinished executions");
    }
    dispatch.wake();
    Ok(found)
}

async fn resume_one(
    journal: &Journal,
    dispatch: &Dispatcher,
    live: &[Lease],
    row: &CommandRow,
) -> Result<(), SubmitError> {
    let worker = row.worker.as_deref();
    // In a store with one owner, a command claimed by a local worker belongs to a process that has
    // ended.
    let is_gone = worker == Some(LOCAL_WORKER)
        || worker.is_some_and(|worker| identity::is_gone(worker, live));
    if row.state == CommandState::Pending {
        dispatch.enqueue(PendingCommand { execution: row.execution, command: row.id });
    } else if is_gone {
        let input = expire(row.id, "the process that ran it ended");
        submit(journal, row, input).await?;
    }
    // A remote worker may still report its command.
    Ok(())
}

/// Submits an input, and retries while the journal is full or has no machine-ID lease.
async fn submit(journal: &Journal, row: &CommandRow, input: Input) -> Result<(), SubmitError> {
    loop {
        match journal.submit(row.execution, input.clone()).await {
            Err(SubmitError::Busy | SubmitError::Unleased) => tokio::time::sleep(BUSY_REST).await,
            outcome => return outcome.map(|_| ()),
        }
    }
}
