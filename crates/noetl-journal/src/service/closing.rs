//! Shuts the journal down, after everything that submits to it.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use noetl_engine::Input;
use noetl_model::{CommandId, ExecutionId};
use tracing::warn;

use super::JournalService;
use crate::dispatch::PendingCommand;
use crate::expiry;
use crate::journal::SubmitError;

/// Maximum time to release commands. Commands left after it become available once their lease
/// expires.
const HAND_BACK_MAX: Duration = Duration::from_secs(5);

/// Poll interval for the end of a claim in flight or of a command.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Number of commands released concurrently.
const TOGETHER: usize = 32;

impl JournalService {
    /// Stops assigning commands. Running commands may still end and be reported.
    pub fn drain(&self) {
        self.dispatch.close();
        self.lifetime.draining().cancel();
    }

    /// Stops claiming and waits until no command runs in this process that must not run twice,
    /// except those of `own`. Commands claimed before still start. Calls `waits` with the number of
    /// such commands, if there are any.
    pub async fn drain_non_idempotent(&self, own: ExecutionId, waits: impl FnOnce(usize)) {
        self.dispatch.close();
        let mut waits = Some(waits);
        loop {
            match self.dispatch.non_idempotent_outside(own) {
                Some(0) => return,
                Some(count) => {
                    if let Some(waits) = waits.take() {
                        waits(count);
                    }
                }
                None => {}
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Commits submitted inputs and stops. On a shared store, commands that still run are released,
    /// so other processes can run them at once; otherwise they are recovered at the next start.
    pub async fn close(&self) {
        self.drain();
        self.lifetime.end().await;
        if self.store.is_shared() {
            self.leave_to_others().await;
        }
        self.sealing.cancel();
        for writer in self.writers.lock().await.drain(..) {
            let _ = writer.await;
        }
        self.leaving.cancel();
        if let Some(identity) = self.identity.lock().await.take() {
            let _ = identity.await;
        }
    }

    /// Releases this process's commands, and notifies other processes of them and of the timers
    /// that this process would have delivered.
    async fn leave_to_others(&self) {
        if tokio::time::timeout(HAND_BACK_MAX, self.hand_back()).await.is_err() {
            warn!("shutdown timeout reached, remaining commands wait for lease expiry");
        }
        // Without the notification, other processes find the work in their next scan.
        let said = tokio::time::timeout(HAND_BACK_MAX, self.store.notify_released_work()).await;
        if !matches!(said, Ok(Ok(()))) {
            warn!("failed to notify other processes of shutdown");
        }
    }

    async fn hand_back(&self) {
        let mut unbegun: BTreeSet<CommandId> = BTreeSet::new();
        loop {
            unbegun.extend(self.local.take_undelivered().await);
            let held = self.dispatch.claimed_commands();
            if held.as_ref().is_some_and(Vec::is_empty) {
                return;
            }
            let unbegun = &unbegun;
            stream::iter(held.unwrap_or_default())
                .for_each_concurrent(TOGETHER, |held| {
                    self.hand_one_back(held, !unbegun.contains(&held.command))
                })
                .await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn hand_one_back(&self, held: PendingCommand, may_have_run: bool) {
        let reason = "the process that held it ended and gave it back";
        let input = Input::Expire(expiry::expire_input(held.command, reason, may_have_run));
        match self.journal.submit(held.execution, input).await {
            // Rejected if the command has already ended.
            Ok(_) | Err(SubmitError::Refused(_)) => self.dispatch.untrack(held.command),
            // Retried as long as time remains.
            Err(error) => {
                warn!(execution.id = %held.execution, %error, "failed to release command, retrying");
            }
        }
    }
}
