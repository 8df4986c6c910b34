//! The slow look at what other processes left behind in a shared database.
//!
//! Work is handed on where it arises, and this process is told when another leaves some. What is
//! told can be lost, and a process can die with what it held: one look in a while finds both.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Input;
use noetl_model::{CommandId, CommandState};
use noetl_store::{CommandRow, Store, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::dispatch::{Dispatch, Waiting};
use crate::identity;
use crate::journal::Journal;
use crate::recovery;

/// The same while work is pending and nothing is heard from others.
const LOOK_DEAF: Duration = Duration::from_millis(250);

/// Commands looked at a time.
const PAGE: usize = 1000;

pub(crate) struct Look {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) journal: Journal,
    pub(crate) dispatch: Dispatch,
    /// Wakes whoever delivers what is due.
    pub(crate) due: Arc<Notify>,
    /// How often to look.
    pub(crate) every: Duration,
    pub(crate) closing: CancellationToken,
}

impl Look {
    /// Looks now and then until the control plane closes.
    pub(crate) async fn run(self) {
        let mut pause = self.every;
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Not at every word: others may say it with every commit.
                () = async {
                    tokio::time::sleep(LOOK_DEAF.min(pause)).await;
                    self.store.others_left_work().await;
                    // One that ends leaves its timers too.
                    self.due.notify_one();
                } => {}
                () = self.closing.cancelled() => return,
            }
            pause = match self.look().await {
                // Work is pending, and nobody would say that there is more.
                Ok(found) if found > 0 && !self.store.hears_others() => LOOK_DEAF,
                Ok(_) => self.every,
                Err(error) => {
                    warn!(%error, "what other processes left is not read yet");
                    self.every
                }
            };
        }
    }

    /// Takes up commands nobody holds, and those whose process is gone.
    pub(crate) async fn look(&self) -> Result<usize, StoreError> {
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
                        self.dispatch.wait(Waiting { execution: row.execution, command: row.id });
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
        let input: Input = recovery::expire(row.id, "the process that ran it is gone");
        info!(execution.id = %row.execution, command.id = %row.id, "a command's process is gone");
        // What fails now is found at the next look.
        if let Err(error) = self.journal.submit(row.execution, input).await {
            warn!(execution.id = %row.execution, %error, "a command is still held by nobody");
        }
    }
}
