//! Reconciles executions whose last commit is unconfirmed.

use noetl_store::StoreError;
use tracing::warn;

use super::SubmitError;
use super::batch::Batch;
use super::writer::JournalWriter;
use crate::dispatch::PendingCommand;
use crate::expiry;

impl JournalWriter {
    /// Reloads the executions of failed commits, stops commands that the log no longer lists as
    /// open, and dispatches pending commands again. Expires commands claimed by this process that
    /// it does not run. Call only while no commit is in flight, so a reloaded state equals the log.
    pub(super) async fn reconcile_unconfirmed(&mut self, batch: &mut Batch) {
        for execution in std::mem::take(&mut self.unconfirmed) {
            self.cache.take(execution);
            let item = match self.item(batch, execution).await {
                Ok(item) => item,
                // The start was not committed, so there is nothing to reconcile.
                Err(SubmitError::Refused(_)) => continue,
                Err(SubmitError::Store(error))
                    if !matches!(error.failure(), StoreError::Row(_)) =>
                {
                    warn!(execution.id = %execution, %error, "failed to load execution, retrying");
                    self.unconfirmed.insert(execution);
                    continue;
                }
                Err(error) => {
                    warn!(execution.id = %execution, %error, "failed to load execution, skipping");
                    continue;
                }
            };
            let state = &item.cached.state;
            // A failing execution waits for its final step, which began after the failure.
            let last = item.cached.playbook.final_step;
            let last = last.map(|step| item.cached.playbook.step(step).name.clone());
            let open: Vec<_> = state
                .open_commands()
                .map(|(id, open)| {
                    (id, open.worker.clone(), last.as_ref() == Some(&open.issued.step))
                })
                .collect();
            self.parts.dispatch.stop_others(execution, |id| state.open_command(id).is_some());
            let (status, is_failing) = (state.status(), state.is_failing());
            if status.is_final() {
                self.parts.watch.ended(execution, status);
            }
            let Some(item) = batch.get(execution) else { continue };
            for (command, worker, is_last) in open {
                if is_failing && !is_last {
                    self.parts.dispatch.stop(command);
                }
                match worker {
                    None => self.parts.dispatch.enqueue(PendingCommand { execution, command }),
                    Some(worker) if worker == self.parts.identity.worker() => {
                        if !self.parts.dispatch.is_running(command) {
                            let expire = expiry::expire(command, "its claim was not confirmed");
                            // Rejected if the command has ended in the meantime.
                            let _ = self.decide_into(item, expire, None, None).await;
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
