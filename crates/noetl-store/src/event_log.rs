//! Storage of event logs. The journal is the only caller that writes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{
    CommandChange, CommandId, Event, EventId, ExecutionId, Seq, Tenant, TimerId, Timestamp,
};

use crate::{Digest, ExecutionRow, NewTimer, StoreError};

/// Events that one execution appends to its log, with the rows derived from them.
#[derive(Debug, Clone)]
pub struct Append {
    /// Sequence number of the last event at the time of the decision. The append takes effect only
    /// directly after it.
    pub expected: Seq,
    /// ID of the event at `expected`; `None` for a start. Two logs of equal length need not be the
    /// same: another process may have appended as many events as a failed append of this process
    /// had.
    pub after: Option<EventId>,
    /// Set if this append creates the execution; `expected` is then [`Seq::START`].
    pub start: Option<StartAppend>,
    /// New events, numbered `expected + 1`, `expected + 2`, and so on.
    pub events: Vec<Arc<Event>>,
    /// Execution row after the events. Its `version` is the sequence number of the last event.
    pub row: ExecutionRow,
    /// Leases of commands that these events claim for workers that list the commands they hold,
    /// each with the time until the worker must first renew it.
    pub leases: Vec<(CommandId, Duration)>,
    /// Net changes of the rows of commands that these events cause, as [`CommandChange::of_all`]
    /// returns them.
    pub commands: Vec<CommandChange>,
    /// Timers and messages created by the events, written with them.
    pub due: Vec<NewTimer>,
    /// Timers of any sender that these events handle, deleted with them; may include one in `due`.
    /// A timer that no longer exists is ignored.
    pub delivered: Vec<TimerId>,
    /// Blobs that the execution refers to from now on. Repeating one has no effect.
    pub blobs: Vec<Digest>,
}

impl Append {
    /// Checks that the append is well-formed. Every store checks before it writes any part of a
    /// batch.
    pub fn check(&self) -> Result<(), Malformed> {
        let execution = self.row.id;
        let begins = self.expected == Seq::START;
        if self.start.is_some() != begins || self.after.is_none() != begins {
            return Err(Malformed::Start { execution });
        }
        if self.events.is_empty() {
            return Err(Malformed::Empty { execution });
        }
        let mut seq = self.expected;
        let mut ids: Vec<EventId> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            seq = seq.next();
            if event.execution != execution {
                return Err(Malformed::Foreign { execution, found: event.execution });
            }
            if event.seq != seq {
                return Err(Malformed::Gap { execution, seq, found: event.seq });
            }
            ids.push(event.id);
        }
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Malformed::EventTaken { execution, event: twice[0] });
        }
        if self.events.iter().filter(|event| event.fact.is_end()).count() > 1 {
            return Err(Malformed::SecondEnd { execution });
        }
        if self.row.version != seq {
            return Err(Malformed::Version { execution, last: seq, found: self.row.version });
        }
        if self.row.status.is_final() != self.row.ended_at.is_some() {
            return Err(Malformed::End { execution });
        }
        Ok(())
    }
}

/// Reason that an append is malformed, whatever the log contains: a bug of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Only a start appends to an empty log, and a start appends to no other.
    #[error("an append to execution {execution} is a start and has a past, or neither")]
    Start { execution: ExecutionId },
    #[error("an append to execution {execution} has no events")]
    Empty { execution: ExecutionId },
    /// An event belongs to another log.
    #[error("an append to execution {execution} has an event of execution {found}")]
    Foreign { execution: ExecutionId, found: ExecutionId },
    /// The events do not follow the log, or one another.
    #[error("an append to execution {execution} has event {found} instead of {seq}")]
    Gap {
        execution: ExecutionId,
        /// Sequence number that was expected.
        seq: Seq,
        found: Seq,
    },
    /// The execution row is not the one after the last event.
    #[error(
        "an append to execution {execution} ends at {last}, but the execution row is at {found}"
    )]
    Version {
        execution: ExecutionId,
        /// Sequence number of the last event.
        last: Seq,
        found: Seq,
    },
    /// The row has an end time without a final status, or the reverse.
    #[error("end time and status of the row of execution {execution} contradict each other")]
    End { execution: ExecutionId },
    /// Two events of one log have the same ID.
    #[error("execution {execution} has an event {event} already")]
    EventTaken { execution: ExecutionId, event: EventId },
    /// The append ends an execution that has already ended.
    #[error("execution {execution} ended already")]
    SecondEnd { execution: ExecutionId },
    /// Two commands have the same ID.
    #[error("command {command} exists already")]
    CommandTaken { command: CommandId },
}

impl From<Malformed> for StoreError {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::EventTaken { .. } => Self::EventTaken(malformed.into()),
            _ => Self::backend("append to the event log", malformed),
        }
    }
}

/// Fields that only the first append of an execution has.
#[derive(Debug, Clone)]
pub struct StartAppend {
    /// Random key. Starting an ID again with the same key is a repeat; with another key, it is a
    /// conflict.
    pub key: u64,
    pub tenant: Tenant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    Appended,
    /// The execution was already started with the same key; nothing was written.
    Repeated,
    /// Another start uses the execution ID; nothing was written. Mint a new ID.
    Taken,
    /// The log is not at `expected`, or contains other events there; nothing was written. Read the
    /// tail and decide again.
    Conflict {
        /// Last sequence number of the log; [`Seq::START`] if the execution does not exist.
        found: Seq,
    },
}

/// End of a read in order of event IDs. The bound is inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadBound {
    /// Reads up to the largest ID.
    #[default]
    End,
    /// Reads up to this ID.
    Event(EventId),
    /// Reads up to the largest ID, without rows created after this time.
    Time(Timestamp),
}

impl ReadBound {
    /// Returns the largest ID in the range.
    pub fn last_id(self) -> EventId {
        match self {
            Self::Event(last) => last,
            Self::End | Self::Time(_) => EventId::new(i64::MAX),
        }
    }

    /// Returns the latest time in the range, or `None` if it is unbounded.
    pub fn last_time(self) -> Option<Timestamp> {
        match self {
            Self::Time(last) => Some(last),
            Self::End | Self::Event(_) => None,
        }
    }
}

/// Returns the smallest ID after this one, the smallest of all after `None`, or `None` after the
/// largest.
pub fn first_after(after: Option<EventId>) -> Option<EventId> {
    match after {
        None => Some(EventId::new(i64::MIN)),
        Some(after) => after.get().checked_add(1).map(EventId::new),
    }
}

/// Returns the size, in bytes, of a row's texts of unbounded length. It limits the size of a page.
pub fn row_bytes(row: &EventRow) -> usize {
    let texts = [&row.context, &row.result, &row.meta, &row.error, &row.more];
    texts.iter().map(|text| text.as_ref().map_or(0, |text| text.len())).sum()
}

/// The append-only logs of all executions.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends a batch in one transaction and returns the outcome of each item, in order.
    ///
    /// An item is written atomically with its command, execution, and timer rows and its blob
    /// references, and never makes another item fail. When this returns `Ok`, every `Appended` item
    /// is on durable storage. When it returns an error other than [`StoreError::Unknown`], the
    /// batch had no effect.
    ///
    /// A malformed item ([`Malformed`]) is a bug of the caller rather than an outcome: it is an
    /// error, and its batch has no effect.
    ///
    /// Batches take effect in the order in which these calls were first polled.
    ///
    /// Several items may belong to one execution; they take effect in order.
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError>;

    /// Returns `true` if other processes may append to the same logs, so that conflicts are
    /// expected.
    fn is_shared(&self) -> bool {
        false
    }

    /// Waits until another process announces that it released work. Notifications can be lost.
    /// Never resolves in a store that is not shared.
    async fn wait_for_released_work(&self) {
        std::future::pending().await
    }

    /// Notifies other processes of released work: commands, or timers that this process no longer
    /// delivers. Delivery is best effort.
    async fn notify_released_work(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns `true` if [`EventLog::wait_for_released_work`] currently receives notifications. If not,
    /// callers that wait for work must poll.
    fn receives_notifications(&self) -> bool {
        false
    }

    /// Locks one execution until the returned value is dropped or committed, so that no other
    /// process appends to it. Waits for the current owner of the lock. In a store that is not
    /// shared, there is nothing to lock.
    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError>;

    /// Returns up to `limit` events recorded after `after`, oldest first.
    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// Returns up to `limit` rows of a log with an ID above `after`, in order of IDs, which need
    /// not be the order in which they were recorded. Returns fewer if they exceed
    /// [`PAGE_BYTES`](crate::tail::PAGE_BYTES), and at least one if any exists. A page with fewer
    /// rows than `limit` and less than half of that size is the last.
    ///
    /// Returns rows as stored, including those that this release cannot decode, but without their
    /// `context`, which may be large and does not affect the outcome of an event. A row of an
    /// adopted database without a sequence number has [`Seq::START`].
    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: ReadBound,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError>;

    /// Returns the smallest ID among the rows recorded after this sequence number, including rows
    /// that have none.
    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError>;

    /// Returns the sequence number of the event with this ID, or of the first report that was sent
    /// with this ID and recorded under another.
    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError>;

    /// Returns those of the IDs that [`Self::find_event`] finds, in one round trip.
    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError>;

    /// Returns the largest event ID in the store, so that new IDs exceed those of a log ahead of
    /// the clock.
    async fn newest_id(&self) -> Result<Option<EventId>, StoreError>;
}

/// The log of one execution that the caller has locked.
#[async_trait]
pub trait LockedLog: Send {
    /// Like [`EventLog::read`], for the locked execution.
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Like [`EventLog::commit`] with one item. Releases the lock.
    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError>;
}

/// Implementation of [`EventLog::hold`] for a store that only one process writes to.
pub struct UnsharedLog<'a, S: ?Sized> {
    store: &'a S,
    execution: ExecutionId,
}

impl<'a, S: EventLog + ?Sized> UnsharedLog<'a, S> {
    /// Wraps an execution of a store that only one process writes to.
    pub fn new(store: &'a S, execution: ExecutionId) -> Self {
        Self { store, execution }
    }
}

#[async_trait]
impl<S: EventLog + ?Sized> LockedLog for UnsharedLog<'_, S> {
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.store.read(self.execution, after, limit).await
    }

    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError> {
        let outcomes = self.store.commit(vec![append]).await?;
        let first = outcomes.into_iter().next();
        first.ok_or_else(|| StoreError::backend("append to the event log", "no answer for an item"))
    }
}
