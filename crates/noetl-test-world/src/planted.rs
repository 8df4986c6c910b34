//! Defects planted on purpose: a simulation that does not find them finds nothing.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use noetl_bus::StreamMessage;
use noetl_model::{CommandId, Event, EventId, Seq, Timestamp};
use noetl_store::{Append, CommandRow, Committed, DedupOutcome, Lease};
use serde_json::Value;

use super::chance::Chance;

/// A defect of the database, as a bug of ours could have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A timer or message is not written with the events that ask for it.
    DueDropped,
    /// A start with a known dedup key starts a new execution.
    KeyForgotten,
    /// A commit is acknowledged but not stored.
    CommitLost,
    /// A conflicting append is reported as stored.
    ConflictHidden,
    /// The event that ends an execution is not written.
    EndLost,
    /// Events are written twice, the second time under other ids.
    EventsTwice,
    /// A pending command is never returned to a worker.
    CommandHidden,
    /// The end of a worker's lease is not noticed.
    LeaseEternal,
    /// A dead process is reported as alive.
    DeadAlive,
    /// A timer goes off before its time.
    TimerEarly,
    /// An execution row differs from its log.
    RowWrong,
    /// The bus confirms an event and does not store it.
    StreamDropped,
    /// The bus stores an event twice, under two message IDs.
    StreamDoubled,
    /// The bus stores two events of one execution in the wrong order.
    StreamReordered,
    /// The bus loses its stream without any fault.
    StreamWiped,
}

impl Planted {
    pub const ALL: [Self; 15] = [
        Self::DueDropped,
        Self::KeyForgotten,
        Self::CommitLost,
        Self::ConflictHidden,
        Self::EndLost,
        Self::EventsTwice,
        Self::CommandHidden,
        Self::LeaseEternal,
        Self::DeadAlive,
        Self::TimerEarly,
        Self::RowWrong,
        Self::StreamDropped,
        Self::StreamDoubled,
        Self::StreamReordered,
        Self::StreamWiped,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DueDropped => "due-dropped",
            Self::KeyForgotten => "key-forgotten",
            Self::CommitLost => "commit-lost",
            Self::ConflictHidden => "conflict-hidden",
            Self::EndLost => "end-lost",
            Self::EventsTwice => "events-twice",
            Self::CommandHidden => "command-hidden",
            Self::LeaseEternal => "lease-eternal",
            Self::DeadAlive => "dead-alive",
            Self::TimerEarly => "timer-early",
            Self::RowWrong => "row-wrong",
            Self::StreamDropped => "stream-dropped",
            Self::StreamDoubled => "stream-doubled",
            Self::StreamReordered => "stream-reordered",
            Self::StreamWiped => "stream-wiped",
        }
    }

    /// Number of opportunities per occurrence of the defect.
    const fn cases(self) -> u64 {
        match self {
            Self::LeaseEternal | Self::DeadAlive | Self::ConflictHidden | Self::KeyForgotten => 1,
            Self::EndLost | Self::TimerEarly => 2,
            Self::DueDropped
            | Self::CommandHidden
            | Self::StreamDropped
            | Self::StreamDoubled
            | Self::StreamReordered
            | Self::StreamWiped => 6,
            Self::CommitLost | Self::EventsTwice | Self::RowWrong => 12,
        }
    }
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Planted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = Self::ALL.into_iter().find(|planted| planted.as_str() == text);
        parsed.ok_or_else(|| format!("there is no defect '{text}'"))
    }
}

pub(crate) struct Defect {
    what: Planted,
    chance: Chance,
    /// Commands that stay hidden.
    hidden: BTreeSet<CommandId>,
    ghosts: Vec<Lease>,
}

impl Defect {
    pub(crate) fn new(what: Planted, seed: u64) -> Self {
        let chance = Chance::new(seed, "defect");
        Self { what, chance, hidden: BTreeSet::new(), ghosts: Vec::new() }
    }

    /// Applies the defect to a batch before it is written. Returns `None` if the batch is dropped.
    pub(crate) fn batch(&mut self, mut batch: Vec<Append>) -> Option<Vec<Append>> {
        let shows = self.chance.one_in(self.what.cases());
        match self.what {
            Planted::DueDropped => {
                for append in batch.iter_mut().filter(|append| !append.due.is_empty()) {
                    if self.chance.one_in(self.what.cases()) {
                        append.due.pop();
                    }
                }
            }
            Planted::TimerEarly => {
                for due in batch.iter_mut().flat_map(|append| &mut append.due) {
                    if due.kind == "wake" && self.chance.one_in(self.what.cases()) {
                        due.at = Timestamp::from_millis(0);
                    }
                }
            }
            Planted::CommitLost if shows => return None,
            Planted::EndLost => {
                for append in &mut batch {
                    let ends = append.events.last().is_some_and(|event| event.fact.is_end());
                    if ends && append.events.len() > 1 && self.chance.one_in(self.what.cases()) {
                        append.events.pop();
                        append.row.version = Seq(append.row.version.0 - 1);
                    }
                }
            }
            Planted::EventsTwice if shows => {
                for append in &mut batch {
                    let Some(last) = append.events.last().cloned() else { continue };
                    if last.fact.is_end() {
                        continue;
                    }
                    let mut again = Event::clone(&last);
                    again.seq = last.seq.next();
                    again.id = EventId::new(last.id.get() + 1);
                    append.row.version = again.seq;
                    append.events.push(Arc::new(again));
                }
            }
            Planted::RowWrong if shows => {
                for append in &mut batch {
                    append.row.steps_completed += 1;
                }
            }
            _ => {}
        }
        Some(batch)
    }

    /// Applies the defect to the outcomes of a written batch.
    pub(crate) fn outcomes(&mut self, outcomes: &mut [Committed]) {
        if self.what == Planted::ConflictHidden {
            for outcome in outcomes.iter_mut() {
                if matches!(outcome, Committed::Conflict { .. }) {
                    *outcome = Committed::Appended;
                }
            }
        }
    }

    /// Applies the defect to a response of the database.
    pub(crate) fn answer(&mut self, what: &str, answer: &mut (dyn Any + Send)) {
        match self.what {
            Planted::LeaseEternal if what == "take_ended" => {
                if let Some(rows) = answer.downcast_mut::<Vec<CommandRow>>() {
                    rows.clear();
                }
            }
            Planted::KeyForgotten => {
                if let Some(reserved) = answer.downcast_mut::<DedupOutcome>() {
                    *reserved = DedupOutcome::New;
                }
            }
            Planted::CommandHidden => {
                if let Some(rows) = answer.downcast_mut::<Vec<CommandRow>>() {
                    for row in rows.iter() {
                        if row.worker.is_none() && self.chance.one_in(self.what.cases()) {
                            self.hidden.insert(row.id);
                        }
                    }
                    rows.retain(|row| !self.hidden.contains(&row.id));
                }
            }
            Planted::DeadAlive => {
                if let Some(live) = answer.downcast_mut::<Vec<Lease>>() {
                    for ghost in &self.ghosts {
                        if !live.iter().any(|lease| lease.is_same(ghost)) {
                            live.push(ghost.clone());
                        }
                    }
                    self.ghosts.clone_from(live);
                }
            }
            _ => {}
        }
    }
}

/// A defect of the bus at work.
pub(crate) struct StreamDefect {
    what: Planted,
    chance: Chance,
}

/// A wrong treatment of one batch, by indexes into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchDefect {
    /// Confirms this message without storing it.
    Drop(usize),
    /// Stores this message a second time, under another message ID.
    Double(usize),
    /// Stores these two messages in each other's position.
    Swap(usize, usize),
    /// Deletes the stream after the batch.
    Wipe,
}

impl StreamDefect {
    /// Returns the defect, or `None` if it is not one of the bus.
    pub(crate) fn new(what: Planted, seed: u64) -> Option<Self> {
        let is_stream = matches!(
            what,
            Planted::StreamDropped
                | Planted::StreamDoubled
                | Planted::StreamReordered
                | Planted::StreamWiped
        );
        is_stream.then(|| Self { what, chance: Chance::new(seed, "stream") })
    }

    /// Draws how the next batch is treated, most often as it should be.
    pub(crate) fn batch(&mut self, batch: &[StreamMessage]) -> Option<BatchDefect> {
        if !self.chance.one_in(self.what.cases()) || batch.is_empty() {
            return None;
        }
        let count = u64::try_from(batch.len()).unwrap_or_default();
        let index = usize::try_from(self.chance.below(count)).unwrap_or_default();
        match self.what {
            Planted::StreamDropped => Some(BatchDefect::Drop(index)),
            Planted::StreamDoubled => Some(BatchDefect::Double(index)),
            Planted::StreamReordered => {
                let wanted = execution(&batch[index])?;
                let mut after = batch.iter().skip(index + 1);
                let other =
                    after.position(|message| execution(message).as_ref() == Some(&wanted))?;
                Some(BatchDefect::Swap(index, index + 1 + other))
            }
            Planted::StreamWiped => Some(BatchDefect::Wipe),
            _ => None,
        }
    }
}

/// Returns the execution that a message names in its payload.
fn execution(message: &StreamMessage) -> Option<Value> {
    let mut payload: Value = serde_json::from_slice(&message.payload).ok()?;
    payload.get_mut("execution_id").map(Value::take)
}
