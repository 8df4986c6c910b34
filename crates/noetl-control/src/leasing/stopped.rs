//! What workers elsewhere are to stop, wherever that was decided.

use std::collections::HashSet;

use noetl_model::{CommandId, ExecutionId};
use noetl_store::{HeldCommand, StoreError};

use super::Leasing;
use crate::due::ABANDON;

impl Leasing {
    /// Those of these commands that are to be stopped because their execution fails, wherever that was
    /// decided. Until it gives up on them, such an execution has a row that says when it does.
    pub(super) async fn stopped_elsewhere(
        &self,
        commands: &[CommandId],
    ) -> Result<HashSet<CommandId>, StoreError> {
        // The one process there is knows by itself.
        if commands.is_empty() || !self.store.is_shared() {
            return Ok(HashSet::new());
        }
        let held = self.store.held(commands).await?;
        let mut executions: Vec<ExecutionId> = held.iter().map(|held| held.execution).collect();
        executions.sort_unstable();
        executions.dedup();
        let failing = self.store.have_sent(ABANDON, &executions).await?;
        let is_stopped = |held: &HeldCommand| failing.binary_search(&held.execution).is_ok();
        Ok(held.into_iter().filter(is_stopped).map(|held| held.id).collect())
    }
}
