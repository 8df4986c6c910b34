//! Imported events: rows written by other control planes and publishers.
//!
//! Imported rows form their own event logs, which can be listed, read, replayed, and purged by age,
//! and which the engine does not drive. An execution started here accepts no imported row: a
//! message about it is a report and belongs to the journal.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::event::ImportedEvent;
use noetl_model::{CatalogId, Event, EventId, ExecutionId, Fact, Seq, Tenant, Timestamp};

use crate::{ExecutionRow, ExecutionStatus, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    pub tenant: Tenant,
    /// Execution the row belongs to.
    pub execution: ExecutionId,
    /// Event ID, which deduplicates repeated imports.
    pub event: EventId,
    /// Time of the event as the row gives it.
    pub at: Timestamp,
    pub row: ImportedEvent,
}

impl Import {
    /// Returns the event for this row with the given sequence number.
    pub fn event(&self, seq: Seq) -> Event {
        Event {
            execution: self.execution,
            id: self.event,
            seq,
            at: self.at,
            fact: Fact::Imported(Box::new(self.row.clone())),
            actor: None,
        }
    }

    /// Returns the catalog entry that the row names.
    pub fn catalog(&self) -> Option<CatalogId> {
        self.row.more.get("catalog_id")?.as_i64().map(CatalogId::new)
    }
}

/// Outcome of importing a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    Kept,
    /// The log already contains a row with this ID; nothing was written.
    Duplicate,
    /// The execution was started here, or the ID is that of a subscription; nothing was written.
    StartedHere,
    /// The execution belongs to another tenant; nothing was written.
    Foreign,
    /// The database rejects the row permanently; nothing was written.
    Refused,
}

/// Imports rows from other control planes.
#[async_trait]
pub trait ImportStore: Send + Sync {
    /// Imports rows in one transaction and returns the outcome of each, in order. An error other
    /// than [`StoreError::Unknown`] means that nothing was written; after `Unknown` a retry is
    /// safe, because rows already written are duplicates.
    ///
    /// Rows get sequence numbers in the given order. Their IDs do not affect
    /// [`crate::EventLog::newest_id`], because they can have any value.
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError>;

    /// Returns those of these executions that were imported.
    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError>;
}

/// An imported execution as shown in listings, with the event that ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedExecution {
    pub row: ExecutionRow,
    /// Event that ended the execution; the one with the largest ID if there are several.
    pub end: Option<EventId>,
}

impl ImportedExecution {
    /// Creates an imported execution without events. Every store builds its rows with this and
    /// [`Self::add`], so that they agree.
    pub fn empty(import: &Import) -> Self {
        let row = ExecutionRow {
            id: import.execution,
            catalog: CatalogId::new(0),
            path: Arc::from(""),
            playbook_version: 0,
            parent: None,
            status: ExecutionStatus::Running,
            version: Seq::START,
            started_at: import.at,
            updated_at: import.at,
            ended_at: None,
            error: None,
            steps_entered: 0,
            steps_completed: 0,
            steps_failed: 0,
            steps_running: 0,
            current_step: None,
        };
        Self { row, end: None }
    }

    /// Adds a row to the listing and returns its sequence number.
    pub fn add(&mut self, import: &Import) -> Seq {
        let row = &mut self.row;
        row.version = row.version.next();
        row.started_at = row.started_at.min(import.at);
        row.updated_at = row.updated_at.max(import.at);
        row.parent = row.parent.or(import.row.parent_execution);
        if row.catalog == CatalogId::new(0) {
            row.catalog = import.catalog().unwrap_or(row.catalog);
        }
        match import.row.event_type.as_deref() {
            Some("playbook_started" | "playbook.started" | "playbook.initialized") => {
                if let Some(path) = &import.row.node_name {
                    row.path = path.clone();
                }
            }
            Some("step.enter" | "step_enter" | "step_started") => {
                row.steps_entered = row.steps_entered.saturating_add(1);
                row.current_step = import.row.node_name.clone().or(row.current_step.take());
            }
            Some("command.completed") => {
                row.steps_completed = row.steps_completed.saturating_add(1);
            }
            Some("command.failed") => row.steps_failed = row.steps_failed.saturating_add(1),
            Some(other) => {
                if let Some(status) = end(other) {
                    self.end(import, status);
                }
            }
            None => {}
        }
        self.row.version
    }

    /// Applies a terminal event. The one with the largest ID counts, in whatever order they arrive.
    fn end(&mut self, import: &Import, status: ExecutionStatus) {
        if self.end.is_some_and(|end| end > import.event) {
            return;
        }
        self.end = Some(import.event);
        self.row.status = status;
        self.row.ended_at = Some(import.at);
        self.row.error = import.row.error.clone();
    }
}

/// Returns the final status of an execution that ends with an event of this type.
fn end(event_type: &str) -> Option<ExecutionStatus> {
    Some(match event_type {
        "playbook.completed" | "playbook_completed" => ExecutionStatus::Completed,
        "playbook.failed" | "playbook_failed" => ExecutionStatus::Failed,
        "playbook.cancelled" | "playbook_cancelled" => ExecutionStatus::Cancelled,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(event: i64, event_type: &str) -> Import {
        Import {
            tenant: Tenant::default(),
            execution: ExecutionId::new(1),
            event: EventId::new(event),
            at: Timestamp::from_micros(event),
            row: ImportedEvent {
                event_type: Some(event_type.to_owned()),
                ..ImportedEvent::default()
            },
        }
    }

    #[test]
    fn the_end_with_the_largest_id_counts_in_any_order() {
        for order in [[5, 7], [7, 5]] {
            let ends = order.map(|id| match id {
                5 => row(5, "playbook.failed"),
                _ => row(7, "playbook_completed"),
            });
            let mut listed = ImportedExecution::empty(&ends[0]);
            ends.iter().for_each(|end| {
                listed.add(end);
            });
            assert_eq!(listed.row.status, ExecutionStatus::Completed, "{order:?}");
            assert_eq!(listed.row.ended_at, Some(Timestamp::from_micros(7)));
            assert_eq!((listed.row.version, listed.end), (Seq(2), Some(EventId::new(7))));
            assert_eq!(listed.row.started_at, Timestamp::from_micros(5));
        }
    }
}
