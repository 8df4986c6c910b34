//! Rows that were not written here: what other servers and publishers hand on.
//!
//! They make logs of their own, which are listed, read, replayed and purged by age, and which
//! nothing drives. An execution that was started here takes no such row: what is said about it is
//! a report, and goes to the journal.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::event::Imported;
use noetl_model::{CatalogId, Event, EventId, ExecutionId, Fact, Seq, Tenant, Timestamp};

use crate::{ExecutionRow, ExecutionStatus, StoreError};

/// One row from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    pub tenant: Tenant,
    /// The execution it is about.
    pub execution: ExecutionId,
    /// Its id, by which a repeat is known.
    pub event: EventId,
    /// When it says it happened.
    pub at: Timestamp,
    pub row: Imported,
}

impl Import {
    /// The event it becomes at this place of its log.
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

    /// The catalog entry it names.
    pub fn catalog(&self) -> Option<CatalogId> {
        self.row.more.get("catalog_id")?.as_i64().map(CatalogId::new)
    }
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    Kept,
    /// Its log has a row with that id; nothing was written.
    Duplicate,
    /// The execution was started here, or it is a subscription of ours; nothing was written.
    StartedHere,
    /// The execution is another tenant's; nothing was written.
    Foreign,
    /// The database does not take it, and never will; nothing was written.
    Refused,
}

/// Adds rows from elsewhere.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Adds rows in one transaction, and answers for each in order. On an error other than
    /// [`StoreError::Unknown`] nothing of them is kept; after that one a repeat is safe, because a
    /// row that is there is a duplicate.
    ///
    /// Rows take their places in the order they are given. Their ids do not count for
    /// [`crate::EventLog::newest_id`]: they may be anything.
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError>;

    /// Of these executions, those that came from elsewhere.
    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError>;
}

/// An execution from elsewhere as lists show it, and which of its ends that is by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedExecution {
    pub row: ExecutionRow,
    /// The event that ended it: of several the one with the largest id.
    pub end: Option<EventId>,
}

impl ImportedExecution {
    /// One without any event. Every store builds its rows with this and [`Self::add`], so that they
    /// agree.
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

    /// Takes one more row into account, and returns its place in the log.
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

    /// Of several ends the last one counts, whatever order they come in.
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

/// The status an execution ends with by an event of this type.
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
            row: Imported { event_type: Some(event_type.to_owned()), ..Imported::default() },
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
