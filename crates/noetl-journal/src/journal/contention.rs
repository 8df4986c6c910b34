//! Decides executions that several processes append to concurrently.
//!
//! By default the writer decides first and lets the commit check the log, which is cheap while no
//! other process appends. After two conflicts on one input, the writer locks the execution's row
//! instead, folds in the events of other processes, and only then decides. Contention thus costs
//! time and never an error.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_engine::Rejection;
use noetl_model::ExecutionId;
use noetl_store::{LockedLog, StoreError};
use tracing::warn;

use super::batch::{Batch, BatchItem, Reply, SealedBatch};
use super::claim::claim;
use super::load::{PAGE, go_past};
use super::writer::{CommitWaiters, JournalWriter};
use super::{QueuedInput, SubmitError};
use crate::dispatch::{PendingCommand, WorkerSlot};
use crate::state_cache::CachedState;

/// Conflicts of one input after which its execution is locked for decisions.
const CONFLICTS_MAX: u32 = 2;

/// Consecutive locked decisions without events from other processes, after which an execution is
/// decided without a lock.
const CALM: u8 = 16;

/// Contended executions, each with its count of consecutive locked decisions without events from
/// other processes.
#[derive(Default)]
pub(super) struct ContendedExecutions(HashMap<ExecutionId, u8>);

impl ContendedExecutions {
    pub(super) fn contains(&self, execution: ExecutionId) -> bool {
        self.0.contains_key(&execution)
    }

    /// Returns `true` if the input has to be decided with its execution locked. A start never is.
    pub(super) fn needs_lock(&mut self, job: &QueuedInput) -> bool {
        if job.start.is_some() {
            return false;
        }
        if job.attempts >= CONFLICTS_MAX {
            self.0.insert(job.execution, 0);
        }
        self.contains(job.execution)
    }

    fn note(&mut self, execution: ExecutionId, moved_by_others: bool) {
        let Some(calm) = self.0.get_mut(&execution) else { return };
        *calm = if moved_by_others { 0 } else { *calm + 1 };
        if *calm >= CALM {
            self.0.remove(&execution);
        }
    }
}

/// Inputs and claims that wait for the lock on one execution.
#[derive(Default)]
pub(super) struct ContendedInputs {
    pub(super) jobs: Vec<QueuedInput>,
    pub(super) claims: Vec<(PendingCommand, WorkerSlot)>,
}

impl JournalWriter {
    /// Locks an execution, then decides and commits its waiting inputs and claims. Call only while
    /// no append of the execution is in flight.
    pub(super) async fn decide_locked(&mut self, execution: ExecutionId, work: ContendedInputs) {
        let ContendedInputs { jobs, claims } = work;
        let store = self.parts.store.clone();
        let taken = async {
            let failed = |error: StoreError| SubmitError::Store(Arc::new(error));
            let mut held = store.hold(execution).await.map_err(failed)?;
            let cached = self.caught_up(execution, &mut *held).await?;
            Ok((held, cached))
        };
        let (held, cached) = match taken.await {
            Ok(taken) => taken,
            Err(error) => {
                for job in jobs {
                    let _ = job.reply.send(Err(SubmitError::clone(&error)));
                }
                let may_pass = match &error {
                    SubmitError::Store(error) => !matches!(error.failure(), StoreError::Row(_)),
                    _ => false,
                };
                for (waiting, slot) in claims {
                    if may_pass {
                        // Retried after a pause, not at once.
                        self.parts.dispatch.enqueue(waiting);
                        self.unread = true;
                        self.parts.dispatch.set_shard_available(self.parts.shard, true);
                    } else {
                        // An unreadable execution must not block the other commands.
                        warn!(execution.id = %waiting.execution, %error, "failed to claim command");
                    }
                    drop(slot);
                }
                return;
            }
        };
        let mut batch = Batch::default();
        let item = batch.put(execution, BatchItem::new(cached, None));
        for job in jobs {
            let retry = Self::retry_copy(&job);
            let decided = match self.is_duplicate_report(&job).await {
                Ok(true) => Ok((item.no_events(), None)),
                Ok(false) => {
                    let QueuedInput { input, first_id, lease_holder, .. } = job;
                    self.decide_into(item, input, first_id, lease_holder.as_ref()).await
                }
                Err(error) => Err(error),
            };
            item.replies.push(Reply::new(job.reply, decided, retry));
        }
        for (waiting, slot) in claims {
            claim(&self.parts, item, waiting, slot, true);
        }
        let SealedBatch { mut appends, pending, states } = batch.seal(&self.parts);
        self.cache_states(states);
        self.batch += 1;
        let outcome = match appends.pop() {
            Some(append) => held.commit(append).await.map(|outcome| vec![outcome]),
            None => Ok(Vec::new()),
        };
        let waiters = CommitWaiters { batch: self.batch, pending };
        self.committed(outcome, waiters).await;
    }

    /// Returns the state of the locked execution with all events in its log applied.
    async fn caught_up(
        &mut self,
        execution: ExecutionId,
        held: &mut dyn LockedLog,
    ) -> Result<CachedState, SubmitError> {
        let known = match self.cache.take(execution) {
            Some(cached) => Some(cached),
            None => self.load(execution).await?,
        };
        let mut cached = known.ok_or(SubmitError::Refused(Rejection::NotFound))?;
        let mut moved_by_others = false;
        loop {
            let tail = held.read(cached.state.version(), PAGE).await;
            let tail = tail.map_err(|error| SubmitError::Store(Arc::new(error)))?;
            for event in &tail {
                cached.state.apply(event);
            }
            go_past(&self.parts.ids, tail.iter().map(|event| event.id).max());
            moved_by_others |= !tail.is_empty();
            if tail.len() < PAGE {
                break;
            }
        }
        self.contended.note(execution, moved_by_others);
        Ok(cached)
    }
}
