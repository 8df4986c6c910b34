//! Finds leased commands to stop because their execution fails, whichever process decided it.

use std::collections::HashSet;

use noetl_journal::ABANDON;
use noetl_model::{CommandId, ExecutionId};
use noetl_store::{ActiveLease, StoreError};

use super::LeaseService;

impl LeaseService {
    /// Returns the commands to stop because their execution fails, whichever process decided it. A
    /// failing execution has an `ABANDON` timer until it abandons its commands.
    pub(super) async fn commands_to_stop(
        &self,
        commands: &[CommandId],
    ) -> Result<HashSet<CommandId>, StoreError> {
        // A single process knows its failing executions from memory.
        if commands.is_empty() || !self.store.is_shared() {
            return Ok(HashSet::new());
        }
        let held = self.store.held(commands).await?;
        let mut executions: Vec<ExecutionId> = held.iter().map(|held| held.execution).collect();
        executions.sort_unstable();
        executions.dedup();
        let failing = self.store.with_pending_timer(ABANDON, &executions).await?;
        let is_stopped = |held: &ActiveLease| failing.binary_search(&held.execution).is_ok();
        Ok(held.into_iter().filter(is_stopped).map(|held| held.id).collect())
    }
}
