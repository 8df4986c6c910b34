//! The log seam: the journal is its only caller that writes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CommandId, DueId, Event, EventId, ExecutionId, Seq, Tenant, Timestamp};

use crate::{Digest, ExecutionRow, NewDue, StoreError};

/// What one execution adds to its log, with the rows that follow from it.
#[derive(Debug, Clone)]
pub struct Append {
    /// The log's last place this was decided on. The append takes effect only right after it.
    pub expected: Seq,
    /// The id of the event at `expected`; none for a start. Two logs of one length need not be the
    /// same log: another process may have appended as many events as were decided here in vain.
    pub after: Option<EventId>,
    /// Given when this creates the execution; `expected` is then [`Seq::START`].
    pub start: Option<Start>,
    /// The new events: `expected + 1`, `expected + 2`, …
    pub events: Vec<Arc<Event>>,
    /// The execution's row after them. Its `version` is the last event's place.
    pub row: ExecutionRow,
    /// Commands that these events claim for a worker that names what it holds, with how long it holds
    /// them until it does.
    pub leases: Vec<(CommandId, Duration)>,
    /// Timers and messages that follow from the events, written with them.
    pub due: Vec<NewDue>,
    /// Rows of any sender that these events answer, removed with them; also one that is in `due`.
    /// One that is gone already is fine.
    pub delivered: Vec<DueId>,
    /// Content the execution refers to from now on; naming one again changes nothing.
    pub blobs: Vec<Digest>,
}

impl Append {
    /// Refuses what no log could take. Every store asks before it writes anything of a batch.
    pub fn check(&self) -> Result<(), Malformed> {
        let execution = self.row.id;
        let begins = self.expected == Seq::START;
        if self.start.is_some() != begins || self.after.is_none() != begins {
            return Err(Malformed::Start { execution });
        }
        if self.events.is_empty() {
            return Err(Malformed::Empty { execution });
        }
        let mut place = self.expected;
        let mut ids: Vec<EventId> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            place = place.next();
            if event.execution != execution {
                return Err(Malformed::Foreign { execution, found: event.execution });
            }
            if event.seq != place {
                return Err(Malformed::Gap { execution, place, found: event.seq });
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
    Start { execution: ExecutionId },
    #[error("an append to execution {execution} has no events")]
    Empty { execution: ExecutionId },
    /// An event of another log.
    #[error("an append to execution {execution} has an event of execution {found}")]
    Foreign { execution: ExecutionId, found: ExecutionId },
    /// The events do not follow on the log, or on each other.
    #[error("an append to execution {execution} has event {found} at place {place}")]
    Gap {
        execution: ExecutionId,
        /// The place that is due.
        place: Seq,
        found: Seq,
    },
    /// The execution row is not the one after the last event.
    #[error("an append to execution {execution} ends at {last}, but its row is at {found}")]
    Version {
        execution: ExecutionId,
        /// The last event's place.
        last: Seq,
        found: Seq,
    },
    /// An end without a final status, or a final status without an end.
    #[error("the row of execution {execution} disagrees with itself on whether it ended")]
    End { execution: ExecutionId },
    /// Two events of one log with one id.
    #[error("execution {execution} has an event {event} already")]
    EventTaken { execution: ExecutionId, event: EventId },
    /// An execution that ended ends again.
    #[error("execution {execution} ended already")]
    SecondEnd { execution: ExecutionId },
    /// Two commands with one id.
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
    Appended,
    /// The execution was started before with the same key; nothing was written.
    Repeated,
    /// The execution id is taken by another start; nothing was written. Mint again.
    Taken,
    /// The log is not at `expected`, or came there by other events; nothing was written. Read the
    /// tail and decide again.
    Conflict {
        /// Where the log is; [`Seq::START`] when there is no such execution.
        found: Seq,
    },
}

/// Where a read in the order of event ids ends. The bound itself is still part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// At the largest id.
    #[default]
    End,
    /// At this id.
    Event(EventId),
    /// Nowhere, but rows made later than this are passed over.
    Time(Timestamp),
}

impl Until {
    /// The largest id that is part of it.
    pub fn last_id(self) -> EventId {
        match self {
            Self::Event(last) => last,
            Self::End | Self::Time(_) => EventId::new(i64::MAX),
        }
    }

    /// The latest time that is part of it; every time is when there is none.
    pub fn last_time(self) -> Option<Timestamp> {
        match self {
            Self::Time(last) => Some(last),
            Self::End | Self::Event(_) => None,
        }
    }
}

/// The smallest id after this one; the smallest of all after none, and none after the largest.
pub fn first_after(after: Option<EventId>) -> Option<EventId> {
    match after {
        None => Some(EventId::new(i64::MIN)),
        Some(after) => after.get().checked_add(1).map(EventId::new),
    }
}

/// Bytes of a row's texts of any length, by which a page of rows ends.
pub fn row_bytes(row: &EventRow) -> usize {
    let texts = [&row.context, &row.result, &row.meta, &row.error, &row.more];
    texts.iter().map(|text| text.as_ref().map_or(0, |text| text.len())).sum()
}

/// The append-only log of every execution.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends a batch in one transaction, and answers for each item in order.
    ///
    /// An item is written whole, with its command, execution and due rows and its references to
    /// content, or not at all, and never fails another. When this returns `Ok`, every `Appended`
    /// item is on durable storage. When it returns an error other than [`StoreError::Unknown`],
    /// nothing of the batch was kept.
    ///
    /// An item that no log could take ([`Malformed`]) is a bug of the caller, not an outcome: it
    /// is an error, and nothing of its batch is kept.
    ///
    /// Batches take effect in the order in which these calls were first polled.
    ///
    /// Command rows follow from the events as `commands::CommandChange::of` says. Several items
    /// may be about one execution; they take effect in order.
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError>;

    /// Whether other processes may append to the same logs, so that a conflict is no mistake.
    fn is_shared(&self) -> bool {
        false
    }

    /// Resolves when another process has said that it left work for whoever has room. What it
    /// says may be lost; never resolves in a store that is not shared.
    async fn others_left_work(&self) {
        std::future::pending().await
    }

    /// Says to other processes that there is work for them: commands, or timers that this one does
    /// not deliver any more. Nobody need hear it.
    async fn say_work_left(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether [`EventLog::others_left_work`] would be heard just now. If not, whoever waits for
    /// work has to look for it.
    fn hears_others(&self) -> bool {
        false
    }

    /// Takes one execution for the caller alone until the answer is dropped or committed: nobody
    /// else appends to it meanwhile. Waits for whoever has it. In a store that is not shared there
    /// is nobody to wait for.
    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn Held + '_>, StoreError>;

    /// Returns up to `limit` events recorded after `after`, oldest first.
    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;

    /// Returns up to `limit` rows of a log with an id above `after`, in the order of ids, which
    /// need not be the order in which they were recorded; fewer where they are more than
    /// [`PAGE_BYTES`](crate::tail::PAGE_BYTES), and at least one if there is any. A page of fewer
    /// that has less than half of that in bytes is the last.
    ///
    /// Rows come as they are stored, so that one which this version cannot decode is still among
    /// them, but without their `context`, which may be large and says nothing about what came of
    /// an event. A row of an adopted database that has no place yet is at [`Seq::START`].
    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: Until,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError>;

    /// The smallest id among the rows that were recorded after this place, those that have no place
    /// yet among them.
    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError>;

    /// The place in this execution's log of the event that has this id, or of the first report that
    /// came with it and was given another.
    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError>;

    /// Returns those of the ids that [`Self::find_event`] finds, in one round trip.
    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError>;

    /// The largest event id in the store, so that new ids go past a log ahead of the clock.
    async fn newest_id(&self) -> Result<Option<EventId>, StoreError>;
}

/// One execution's log that nobody else appends to for now.
#[async_trait]
pub trait Held: Send {
    /// As [`EventLog::read`], of this execution.
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// As [`EventLog::commit`] of one item, and lets go.
    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError>;
}

/// What a store that has one owner hands out for [`EventLog::hold`].
pub struct Unshared<'a, S: ?Sized> {
    store: &'a S,
    execution: ExecutionId,
}

impl<'a, S: EventLog + ?Sized> Unshared<'a, S> {
    /// An execution of a store that nobody else writes to.
    pub fn new(store: &'a S, execution: ExecutionId) -> Self {
        Self { store, execution }
    }
}

#[async_trait]
impl<S: EventLog + ?Sized> Held for Unshared<'_, S> {
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.store.read(self.execution, after, limit).await
    }

    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError> {
        let outcomes = self.store.commit(vec![append]).await?;
        let first = outcomes.into_iter().next();
        first.ok_or_else(|| StoreError::backend("append to the event log", "no answer for an item"))
    }
}
