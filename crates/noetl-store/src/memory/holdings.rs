//! [`CommandLeaseStore`] of the in-memory store.

use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{CommandId, CommandState, ExecutionId, Tenant};

use super::MemoryStore;
use super::state::MemoryState;
use crate::command_leases::{ActiveLease, CommandLease, HeldBy, HeldLimit, SILENCE_MAX};
use crate::{CommandLeaseStore, CommandRow, StoreError};

impl MemoryState {
    /// Returns `true` if an execution belongs to this tenant, or if `tenant` is `None`.
    pub(super) fn is_of(&self, execution: ExecutionId, tenant: Option<&Tenant>) -> bool {
        let of = || self.executions.get(&execution).map(|known| &known.tenant);
        tenant.is_none_or(|tenant| of() == Some(tenant))
    }

    /// Returns the commands that a worker holds under a lease, and whether it has started each.
    fn held_by(&self, scope: Option<&Tenant>, worker: &str) -> Vec<(CommandId, bool)> {
        let rows = self.holdings.keys().filter_map(|id| self.commands.get(id));
        let held = rows.filter(|row| {
            row.worker.as_deref() == Some(worker) && self.is_of(row.execution, scope)
        });
        held.map(|row| (row.id, row.state == CommandState::Running)).collect()
    }
}

#[async_trait]
impl CommandLeaseStore for MemoryStore {
    async fn renew_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let mut held = state.held_by(scope, worker);
        held.retain(|(id, _)| commands.contains(id));
        for (id, _) in &held {
            state.holdings.insert(*id, CommandLease { until: now.plus(lasts), at_most: None });
        }
        Ok(held.into_iter().map(|(id, _)| id).collect())
    }

    async fn touch_worker(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let mut renewed = 0;
        for (id, has_begun) in state.held_by(scope, worker) {
            let Some(holding) = state.holdings.get_mut(&id) else { continue };
            let Some(at_most) = holding.at_most.filter(|_| has_begun) else { continue };
            holding.until = now.plus(SILENCE_MAX).min(at_most);
            renewed += 1;
        }
        Ok(renewed)
    }

    async fn release_leases(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
    ) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let held = state.held_by(scope, worker);
        for (id, _) in &held {
            state.holdings.insert(*id, CommandLease { until: now, at_most: Some(now) });
        }
        Ok(held.len())
    }

    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError> {
        let at_most = self.clock.now().plus(within);
        let mut state = self.state();
        let is_meant = |row: &CommandRow| {
            let is_named = match by {
                HeldBy::Worker(worker) => row.worker.as_deref() == Some(worker),
                HeldBy::Commands(commands) => commands.contains(&row.id),
            };
            is_named && state.is_of(row.execution, scope)
        };
        let ids: Vec<CommandId> = state.holdings.keys().copied().collect();
        let meant = |id: &CommandId| state.commands.get(id).is_some_and(is_meant);
        let ids: Vec<CommandId> = ids.into_iter().filter(meant).collect();
        let mut limited = HeldLimit { at_most, commands: 0 };
        for id in ids {
            let Some(holding) = state.holdings.get_mut(&id) else { continue };
            if holding.at_most.is_some_and(|limit| limit > at_most) {
                holding.at_most = Some(at_most);
                holding.until = holding.until.min(at_most);
                limited.commands += 1;
            }
        }
        Ok(Some(limited).filter(|limited| limited.commands > 0).into_iter().collect())
    }

    async fn held(&self, commands: &[CommandId]) -> Result<Vec<ActiveLease>, StoreError> {
        let state = self.state();
        let lease = |id: &CommandId| {
            let CommandLease { until, at_most } = *state.holdings.get(id)?;
            let execution = state.commands.get(id)?.execution;
            Some(ActiveLease { id: *id, execution, until, at_most })
        };
        let mut held: Vec<ActiveLease> = commands.iter().filter_map(lease).collect();
        held.sort_unstable();
        held.dedup();
        Ok(held)
    }

    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError> {
        let state = self.state();
        let rows = state.holdings.keys().filter_map(|id| state.commands.get(id));
        let mut rows: Vec<CommandRow> =
            rows.filter(|row| row.execution == execution).cloned().collect();
        rows.sort_unstable_by_key(|row| row.id);
        Ok(rows)
    }

    async fn claim_expired(
        &self,
        limit: usize,
        reclaim_after: Duration,
    ) -> Result<Vec<CommandRow>, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let over = state.holdings.iter().filter(|(_, holding)| holding.until <= now);
        let mut over: Vec<_> = over.map(|(id, holding)| (holding.until, *id)).collect();
        over.sort_unstable();
        over.truncate(limit);
        for (_, id) in &over {
            if let Some(holding) = state.holdings.get_mut(id) {
                holding.until = now.plus(reclaim_after);
            }
        }
        Ok(over.iter().filter_map(|(_, id)| state.commands.get(id).cloned()).collect())
    }
}
