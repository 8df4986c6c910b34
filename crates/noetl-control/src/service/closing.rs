//! How a control plane ends.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use noetl_engine::Input;
use noetl_model::{CommandId, ExecutionId};
use tracing::warn;

use super::Control;
use crate::dispatch::Waiting;
use crate::journal::SubmitError;
use crate::recovery;

/// How long handing back may take. Others miss what is left when its lease has ended.
const HAND_BACK_MAX: Duration = Duration::from_secs(5);

/// How often it is looked whether a claim under way has ended, or a command.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many commands are handed back at a time.
const TOGETHER: usize = 32;

impl Control {
    /// Hands out no further command. What runs may still end and be reported.
    pub fn drain(&self) {
        self.dispatch.close();
        self.draining.cancel();
    }

    /// Claims nothing more and waits until nothing runs here that may not run twice, but for what is
    /// of `own`. What was claimed before still begins. `waits` is told how much there is to wait for,
    /// if there is anything.
    pub async fn finish_once(&self, own: ExecutionId, waits: impl FnOnce(usize)) {
        self.dispatch.close();
        let mut waits = Some(waits);
        loop {
            match self.dispatch.once_beside(own) {
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

    /// Commits what was submitted and stops. Commands that still run are handed back where others
    /// could go on with them at once; elsewhere they are found again at the next start.
    pub async fn close(&self) {
        self.drain();
        self.closing.cancel();
        for task in self.tasks.lock().await.drain(..) {
            // One that panicked has nothing left to do.
            let _ = task.await;
        }
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

    /// Gives back what this process holds, and tells others to look for that and for timers that it
    /// would have delivered.
    async fn leave_to_others(&self) {
        if tokio::time::timeout(HAND_BACK_MAX, self.hand_back()).await.is_err() {
            warn!("what ran here is handed out again only when its lease has ended");
        }
        // Without an answer they find it when they look by themselves.
        let said = tokio::time::timeout(HAND_BACK_MAX, self.store.say_work_left()).await;
        if !matches!(said, Ok(Ok(()))) {
            warn!("other processes were not told that this one ends");
        }
    }

    async fn hand_back(&self) {
        let mut unbegun: BTreeSet<CommandId> = BTreeSet::new();
        loop {
            unbegun.extend(self.local.untaken().await);
            let held = self.dispatch.held();
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

    async fn hand_one_back(&self, held: Waiting, may_have_run: bool) {
        let reason = "the process that held it ended and gave it back";
        let input = Input::Expire(recovery::ended(held.command, reason, may_have_run));
        match self.leasing.journal.submit(held.execution, input).await {
            // Refused when it is over already.
            Ok(_) | Err(SubmitError::Refused(_)) => self.dispatch.ended(held.command),
            // It is tried again for as long as there is time.
            Err(error) => {
                warn!(execution.id = %held.execution, %error, "a command is not handed back yet");
            }
        }
    }
}
