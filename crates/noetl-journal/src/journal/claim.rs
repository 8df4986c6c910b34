//! Claims commands for the local worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_engine::{Claim, Rejection};
use noetl_model::event::CommandSpec;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::StoreError;
use tracing::warn;

use super::SubmitError;
use super::batch::{Batch, BatchItem, LocalClaim};
use super::contention::ContendedInputs;
use super::decide::decide_claim;
use super::writer::{JournalWriter, WriterDeps};
use crate::dispatch::{PendingCommand, WorkerSlot};
use crate::pending;

impl JournalWriter {
    /// Claims pending commands while slots are free.
    ///
    /// While the shard's store is unavailable, the writer probes it with a single read of the
    /// oldest command and reserves no slot, because commands of other shards need the slots.
    pub(super) async fn claim_all_waiting(
        &mut self,
        batch: &mut Batch,
        held: &mut BTreeMap<ExecutionId, ContendedInputs>,
    ) {
        let shard = self.parts.shard;
        let is_away = self.is_away().await;
        self.unread = is_away;
        if !is_away {
            self.reload_overflow().await;
            while let Some((waiting, slot)) = self.parts.dispatch.next(shard) {
                if self.contended.contains(waiting.execution)
                    && !self.is_in_flight(waiting.execution)
                    && batch.get(waiting.execution).is_none()
                {
                    held.entry(waiting.execution).or_default().claims.push((waiting, slot));
                } else if self.claim_waiting(batch, waiting, slot).await.is_err() {
                    self.parts.dispatch.enqueue(waiting);
                    self.unread = true;
                    break;
                }
            }
        }
        self.parts.dispatch.set_shard_available(shard, self.unread);
    }

    /// Returns `true` if the store failed before and still does not respond.
    async fn is_away(&self) -> bool {
        match self.parts.dispatch.oldest(self.parts.shard) {
            Some(waiting) if self.unread => {
                self.parts.store.tenant_of(waiting.execution).await.is_err()
            }
            Some(_) | None => false,
        }
    }

    /// Claims a pending command. Returns an error if its state cannot be read for now.
    pub(super) async fn claim_waiting(
        &mut self,
        batch: &mut Batch,
        waiting: PendingCommand,
        slot: WorkerSlot,
    ) -> Result<(), Arc<StoreError>> {
        match self.item_with(batch, waiting).await {
            Ok(Some(item)) => claim(&self.parts, item, waiting, slot, true),
            Ok(None) => self.late.push(waiting),
            Err(SubmitError::Store(error)) if !matches!(error.failure(), StoreError::Row(_)) => {
                return Err(error);
            }
            // An unreadable execution must not block the other commands.
            Err(error) => {
                warn!(execution.id = %waiting.execution, %error, "failed to claim pending command");
            }
        }
        Ok(())
    }

    /// Returns the batch item of a command's execution, with a state at least as new as the
    /// command: another process may have issued the command after this process last updated the
    /// state. Returns `None` while decisions on the older state are outstanding, which will not be
    /// committed, and while the store lacks events that are being committed.
    async fn item_with<'b>(
        &mut self,
        batch: &'b mut Batch,
        waiting: PendingCommand,
    ) -> Result<Option<&'b mut BatchItem>, SubmitError> {
        if batch.get(waiting.execution).is_none() && self.is_ahead_of_store(waiting.execution) {
            return Ok(None);
        }
        let item = self.item(batch, waiting.execution).await?;
        let state = &item.cached.state;
        let is_behind = state.open_command(waiting.command).is_none()
            && state.last_event().is_none_or(|last| last < waiting.command.into());
        if !is_behind || !self.parts.store.is_shared() {
            return Ok(Some(item));
        }
        if !item.is_untouched() || self.is_in_flight(waiting.execution) {
            return Ok(None);
        }
        let found = self.load(waiting.execution).await?;
        let cached = found.ok_or(SubmitError::Refused(Rejection::NotFound))?;
        *item = BatchItem::new(cached, None);
        Ok(Some(item))
    }

    /// Returns commands that were newer than their cached state to the queue.
    pub(super) fn requeue_stale(&mut self) {
        if !self.late.is_empty() {
            for waiting in self.late.drain(..) {
                self.parts.dispatch.enqueue(waiting);
            }
            self.parts.dispatch.wake();
        }
    }

    /// Reloads pending commands from the store that did not fit into memory.
    pub(super) async fn reload_overflow(&mut self) {
        if !self.parts.dispatch.take_overflow(self.parts.shard) {
            return;
        }
        if let Err(error) = pending::enqueue_pending(&*self.parts.store, &self.parts.dispatch).await
        {
            warn!(%error, "failed to reload pending commands, retrying");
            self.parts.dispatch.overflow(self.parts.shard);
            self.unread = true;
        }
    }
}

/// Returns `true` if the command's pool is served by remote workers, so the local worker leaves it
/// to them.
pub(super) fn is_left_to_remote(parts: &WriterDeps, issued: &CommandSpec, tenant: &Tenant) -> bool {
    let served = parts.dispatch.served();
    issued.pool.as_ref().is_some_and(|pool| served.defer_to_remote(pool, &issued.tool, tenant))
}

pub(super) fn claim(
    parts: &WriterDeps,
    item: &mut BatchItem,
    waiting: PendingCommand,
    slot: WorkerSlot,
    waited: bool,
) {
    let command = waiting.command;
    let Some(open) = item.cached.state.open_command(command) else { return };
    let issued = open.issued.clone();
    if is_left_to_remote(parts, &issued, &item.cached.tenant) {
        return;
    }
    let claim = Claim { command, worker: parts.identity.worker() };
    match decide_claim(parts, &mut item.cached, claim) {
        // No event: it was claimed before and already runs.
        Ok(decision) if decision.events.is_empty() => {}
        Ok(decision) => {
            item.add(decision);
            let tenant = item.cached.tenant.clone();
            item.claims.push(LocalClaim { waiting, slot, issued, tenant, waited });
        }
        // The command ended in the meantime. Dropping the slot frees it.
        Err(_) => {}
    }
}
