//! [`ImportStore`] of the in-memory store.

use std::collections::HashSet;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{ExecutionId, Timestamp};

use super::MemoryStore;
use super::state::{Execution, MemoryState};
use crate::{Import, ImportOutcome, ImportStore, ImportedExecution, StoreError};

#[async_trait]
impl ImportStore for MemoryStore {
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        Ok(rows.iter().map(|row| state.import(row, now)).collect())
    }

    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let state = self.state();
        let is_imported = |id: &&ExecutionId| {
            state.executions.get(*id).is_some_and(|known| known.imported.is_some())
        };
        Ok(executions.iter().filter(is_imported).copied().collect())
    }
}

impl MemoryState {
    fn import(&mut self, import: &Import, now: Timestamp) -> ImportOutcome {
        if self.subscriptions.owner(import.execution).is_some() {
            return ImportOutcome::StartedHere;
        }
        let known = self.executions.entry(import.execution);
        let known = known.or_insert_with(|| Execution::of_elsewhere(import));
        let Some(end) = known.imported else { return ImportOutcome::StartedHere };
        if known.tenant != import.tenant {
            return ImportOutcome::Foreign;
        }
        if known.has(import.event) {
            return ImportOutcome::Duplicate;
        }
        let mut listed = ImportedExecution { row: known.row.clone(), end };
        let seq = listed.add(import);
        let row = EventRow::from(&import.event(seq));
        let previous = known.log.last().map(|row| row.event_id);
        known.row = listed.row;
        known.imported = Some(listed.end);
        known.add(row.clone());
        self.positions.give(import.execution, seq);
        let known = &self.executions[&import.execution];
        self.outbox.add((&known.tenant, known.row.catalog), &[row], previous, now);
        ImportOutcome::Kept
    }
}
