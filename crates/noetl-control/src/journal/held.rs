//! Executions that several processes move at once.
//!
//! Deciding first and asking the log afterwards is cheap while nobody else moves an execution. One
//! that was moved by others twice in a row is held instead: its row is locked, what the others
//! recorded is folded in, and only then is it decided. Contention so costs time and never an error.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_engine::Refusal;
use noetl_model::ExecutionId;
use noetl_store::{Held, StoreError};
use tracing::warn;

use super::batch::{Batch, Item, Reply, Sealed};
use super::claim::claim;
use super::load::{PAGE, go_past};
use super::writer::{Waiters, Writer};
use super::{Job, SubmitError};
use crate::cache::Cached;
use crate::dispatch::{Slot, Waiting};

/// Conflicts of one input after which its execution is held.
const CONFLICTS_MAX: u32 = 2;

/// How many times in a row nobody else has to have moved a held execution for it to be decided
/// without being held again.
const CALM: u8 = 16;

/// Executions to be held, with how long nobody else has moved them.
#[derive(Default)]
pub(super) struct Contended(HashMap<ExecutionId, u8>);

impl Contended {
    pub(super) fn contains(&self, execution: ExecutionId) -> bool {
        self.0.contains_key(&execution)
    }

    /// Whether this input is to be decided with its execution held.
    pub(super) fn takes(&mut self, job: &Job) -> bool {
        if job.start.is_some() {
            return false;
        }
        if job.tries >= CONFLICTS_MAX {
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

/// What waits for one execution to be held.
#[derive(Default)]
pub(super) struct ForHeld {
    pub(super) jobs: Vec<Job>,
    pub(super) claims: Vec<(Waiting, Slot)>,
}

impl Writer {
    /// Decides and commits everything that waits for one execution. Nothing of it is under way.
    pub(super) async fn decide_held(&mut self, execution: ExecutionId, work: ForHeld) {
        let ForHeld { jobs, claims } = work;
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
                        // Looked at again after a rest, not at once.
                        self.parts.dispatch.wait(waiting);
                        self.unread = true;
                        self.parts.dispatch.set_away(self.parts.shard, true);
                    } else {
                        // One that can never be read is no reason to keep all others waiting.
                        warn!(execution.id = %waiting.execution, %error, "a command is not claimed");
                    }
                    drop(slot);
                }
                return;
            }
        };
        let mut batch = Batch::default();
        let item = batch.put(execution, Item::new(cached, None));
        for job in jobs {
            let again = Self::remember(&job);
            let decided = match self.is_repeated(&job).await {
                Ok(true) => Ok((item.add(Vec::new()), None)),
                Ok(false) => {
                    let Job { input, first_id, elsewhere, .. } = job;
                    self.decide_into(item, input, first_id, elsewhere.as_ref()).await
                }
                Err(error) => Err(error),
            };
            item.replies.push(Reply::new(job.reply, decided, again));
        }
        for (waiting, slot) in claims {
            claim(&self.parts, item, waiting, slot, true);
        }
        let Sealed { mut appends, pending, states } = batch.seal(&self.parts);
        self.cache_states(states);
        self.batch += 1;
        let outcome = match appends.pop() {
            Some(append) => held.commit(append).await.map(|outcome| vec![outcome]),
            None => Ok(Vec::new()),
        };
        let waiters = Waiters { batch: self.batch, pending };
        self.committed(outcome, waiters).await;
    }

    /// The execution as its log is now.
    async fn caught_up(
        &mut self,
        execution: ExecutionId,
        held: &mut dyn Held,
    ) -> Result<Cached, SubmitError> {
        let known = match self.cache.take(execution) {
            Some(cached) => Some(cached),
            None => self.load(execution).await?,
        };
        let mut cached = known.ok_or(SubmitError::Refused(Refusal::NotFound))?;
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
