//! The log seam: the journal is its only caller that writes.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, Event, EventId, ExecutionId, Seq, Tenant};

use crate::{Digest, ExecutionRow, StoreError};

/// What one execution adds to its log, with the rows that follow from it.
#[derive(Debug, Clone)]
pub struct Append {
    /// The log's last place this was decided on. The append takes effect only right after it.
    pub expected: Seq,
    /// Given when this creates the execution; `expected` is then [`Seq::START`].
    pub start: Option<Start>,
    /// The new events: `expected + 1`, `expected + 2`, …
    pub events: Vec<Arc<Event>>,
    /// The execution's row after them. Its `version` is the last event's place.
    pub row: ExecutionRow,
    /// Content the execution refers to from now on; naming one again changes nothing.
    pub blobs: Vec<Digest>,
}

impl Append {
    /// Refuses what no log could take. Every store asks before it writes anything of a batch.
    pub fn check(&self) -> Result<(), Malformed> {
        let execution = self.row.id;
        if self.start.is_some() != (self.expected == Seq::START) {
            return Err(Malformed::Start { execution });
        }
        if self.events.is_empty() {
            return Err(Malformed::Empty { execution });
        }
        let mut place = self.expected;
        for event in &self.events {
            place = place.next();
            if event.execution != execution {
                return Err(Malformed::Foreign { execution, found: event.execution });
            }
            if event.seq != place {
                return Err(Malformed::Gap { execution, place, found: event.seq });
            }
        }
        if self.row.version != place {
            return Err(Malformed::Version { execution, last: place, found: self.row.version });
        }
        if self.row.status.is_final() != self.row.ended_at.is_some() {
            return Err(Malformed::End { execution });
        }
        Ok(())
    }
}

/// An append that no log could take, whatever is in it: its caller is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Only a start appends to an empty log, and a start appends to nothing else.
    #[error("an append to execution {execution} is a start and has a past, or neither")]
    Start {
        /// The execution.
        execution: ExecutionId,
    },
    /// Nothing to append.
    #[error("an append to execution {execution} has no events")]
    Empty {
        /// The execution.
        execution: ExecutionId,
    },
    /// An event of another log.
    #[error("an append to execution {execution} has an event of execution {found}")]
    Foreign {
        /// The execution.
        execution: ExecutionId,
        /// The event's execution.
        found: ExecutionId,
    },
    /// The events do not follow on the log, or on each other.
    #[error("an append to execution {execution} has event {found} at place {place}")]
    Gap {
        /// The execution.
        execution: ExecutionId,
        /// The place that is due.
        place: Seq,
        /// The event's place.
        found: Seq,
    },
    /// The execution row is not the one after the last event.
    #[error("an append to execution {execution} ends at {last}, but its row is at {found}")]
    Version {
        /// The execution.
        execution: ExecutionId,
        /// The last event's place.
        last: Seq,
        /// The row's version.
        found: Seq,
    },
    /// An end without a final status, or a final status without an end.
    #[error("the row of execution {execution} disagrees with itself on whether it ended")]
    End {
        /// The execution.
        execution: ExecutionId,
    },
    /// Two commands with one id.
    #[error("command {command} exists already")]
    CommandTaken {
        /// The command.
        command: CommandId,
    },
}

impl From<Malformed> for StoreError {
    fn from(malformed: Malformed) -> Self {
        Self::backend("append to the event log", malformed)
    }
}

/// What only the first append of an execution carries.
#[derive(Debug, Clone)]
pub struct Start {
    /// A random key: starting an id again with the same key is a repeat, with another a clash.
    pub key: u64,
    /// Whose execution it is.
    pub tenant: Tenant,
}

/// What became of one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is durable.
    Appended,
    /// The execution was started before with the same key; nothing was written.
    Repeated,
    /// The execution id is taken by another start; nothing was written. Mint again.
    Taken,
    /// The log is not at `expected`; nothing was written. Read the tail and decide again.
    Conflict {
        /// Where the log is; [`Seq::START`] when there is no such execution.
        found: Seq,
    },
}

/// The append-only log of every execution.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends a batch in one transaction, and answers for each item in order.
    ///
    /// An item is written whole, with its command and execution rows and its references to content,
    /// or not at all, and never fails another. When this returns `Ok`, every `Appended` item survives a power cut. When it
    /// returns an error other than [`StoreError::Unknown`], nothing of the batch was kept.
    ///
    /// An item that no log could take ([`Malformed`]) is a bug of the caller, not an outcome: it
    /// is an error, and nothing of its batch is kept.
    ///
    /// Batches take effect in the order in which these calls were first polled.
    ///
    /// Command rows follow from the events as `commands::CommandChange::of` says. Several items
    /// may be about one execution; they take effect in order.
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError>;

    /// Returns up to `limit` events recorded after `after`, oldest first.
    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// The place of the event with this id in this execution's log, among reported events; the
    /// first when several have it.
    async fn find_reported(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError>;

    /// The largest event id in the store, so that new ids go past a log ahead of the clock.
    async fn newest_id(&self) -> Result<Option<EventId>, StoreError>;
}
