//! The state of one loop: its items, which of them run, and how the others ended.
//!
//! A loop may have a hundred thousand items, so every change here is small, and so is the way back
//! from it ([`Undo`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::repeat::{FrameSizes, LoopStarted, LoopStats};
use noetl_model::{Failure, FailureKind};
use noetl_playbook::template::{Data, Gathered, Slot, Source, from_json_owned};

use crate::values::Kept;

/// How long a failure's sentence is kept for the loop's list of errors.
const MESSAGE_MAX: usize = 500;

/// A loop under way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repeat {
    pub(crate) counters: Counters,
    /// The step whose arc led to the loop.
    pub(crate) from: Option<Arc<str>>,
    /// Sizes of its frames, when templates gave them.
    pub(crate) frame: Option<FrameSizes>,
    /// The items, in the pieces they were recorded in.
    pub(crate) chunks: Vec<Chunk>,
    /// How each item ended; `None` for those that did not yet.
    pub(crate) ends: Vec<Option<End>>,
    /// Items that are worked on together: all of a collection, or the rows of a frame.
    pub(crate) spans: BTreeMap<u32, Span>,
}

/// The numbers of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    /// How many items there are; `None` while rows are still claimed.
    pub(crate) total: Option<u32>,
    pub(crate) max_in_flight: u32,
    /// Items whose command is open.
    pub(crate) open: u32,
    pub(crate) done: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
    /// Claims of rows that are open.
    pub(crate) claims: u32,
    /// Frames that were begun.
    pub(crate) frames: u32,
    /// Frames that had rows.
    pub(crate) full_frames: u32,
    /// Whether a claim found no row.
    pub(crate) drained: bool,
    /// The item that failed first.
    pub(crate) first_failed: Option<u32>,
    /// A rough size of the items and results that are held.
    pub(crate) bytes: usize,
}

/// Items that were recorded together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) from: u32,
    pub(crate) len: u32,
    pub(crate) items: Kept,
}

/// How an item ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Done(Kept),
    Failed(Arc<Short>),
    Skipped,
}

/// What is kept of an item's failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) retryable: bool,
}

/// Items that are worked on together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u32,
    pub(crate) rows: u32,
    /// How many were handed out.
    pub(crate) next: u32,
    pub(crate) open: u32,
    pub(crate) failed: u32,
}

/// What one change replaced.
#[derive(Debug)]
pub(crate) enum Undo {
    Counters(Counters),
    Span(u32, Option<Span>),
    End(u32, Option<End>),
    /// A chunk was added; before it there were so many ends.
    Chunk(usize),
}

impl Repeat {
    pub(crate) fn new(started: &LoopStarted) -> Self {
        let total = started.total;
        let counters =
            Counters { total, max_in_flight: started.max_in_flight, ..Counters::default() };
        let mut spans = BTreeMap::new();
        if let Some(rows) = total.filter(|rows| *rows > 0) {
            spans.insert(0, Span { first: 0, rows, next: 0, open: 0, failed: 0 });
        }
        let ends = vec![None; index(total.unwrap_or(0))];
        let (from, frame) = (started.from.clone(), started.frame);
        Self { counters, from, frame, chunks: Vec::new(), ends, spans }
    }

    /// Where an item is: the chunk it is in, and its place there.
    pub(crate) fn place_of(&self, item: u32) -> Option<(&Slot, usize)> {
        let after = self.chunks.partition_point(|chunk| chunk.from <= item);
        let chunk = self.chunks.get(after.checked_sub(1)?)?;
        let offset = item - chunk.from;
        (offset < chunk.len).then(|| (&chunk.items.slot, index(offset)))
    }

    /// The span an item belongs to.
    pub(crate) fn span_of(&self, frame: Option<u32>) -> u32 {
        frame.unwrap_or(0)
    }

    /// Whether nothing of it runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.counters.open == 0 && self.counters.claims == 0
    }

    /// Whether all its items have ended and no more will come.
    pub(crate) fn is_over(&self) -> bool {
        let all_given = self.spans.values().all(|span| span.next >= span.rows);
        self.is_quiet() && all_given && (self.counters.total.is_some() || self.counters.drained)
    }

    pub(crate) fn stats(&self) -> LoopStats {
        let Counters { done: success, failed, .. } = self.counters;
        let total = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        LoopStats { total, success, failed, skipped: total.saturating_sub(success + failed) }
    }

    /// The failure of a loop that stops at its first failed item.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let first = self.counters.first_failed?;
        let Some(Some(End::Failed(short))) = self.ends.get(index(first)) else { return None };
        let message = format!("item {first}: {}", short.message);
        let stats = self.stats();
        let details = serde_json::json!({
            "index": first,
            "stats": stats,
        });
        let mut failure = Failure::new(short.kind.clone(), message).with_details(details);
        failure.retryable = short.retryable;
        Some(failure)
    }

    /// What the loop's result is made of, with a rough size of what of it is held.
    pub(crate) fn result(&self) -> Kept {
        let mut results = Vec::with_capacity(self.ends.len());
        let mut errors = Vec::new();
        let mut bytes = 512;
        for (place, end) in self.ends.iter().enumerate() {
            results.push(match end {
                Some(End::Done(kept)) => {
                    bytes += kept.bytes;
                    kept.slot.clone()
                }
                Some(End::Failed(short)) => {
                    errors.push(serde_json::json!({
                        "index": place,
                        "error": {
                            "kind": short.kind,
                            "message": short.message,
                            "retryable": short.retryable,
                        },
                    }));
                    bytes += 128 + short.message.len();
                    Slot::Held(Data::from(()))
                }
                Some(End::Skipped) | None => Slot::Held(Data::from(())),
            });
        }
        let stats = serde_json::json!(self.stats());
        let fields: [(Arc<str>, Source); 3] = [
            (Arc::from("results"), Source::List(Arc::new(Gathered::new(results)))),
            (Arc::from("stats"), Source::Held(from_json_owned(stats))),
            (Arc::from("errors"), Source::Held(from_json_owned(errors.into()))),
        ];
        Kept { slot: Slot::fields(fields), bytes }
    }

    pub(crate) fn set_counters(&mut self, change: impl FnOnce(&mut Counters)) -> Undo {
        let before = self.counters;
        change(&mut self.counters);
        Undo::Counters(before)
    }

    pub(crate) fn set_span(&mut self, span: u32, value: Option<Span>) -> Undo {
        let before = match value {
            Some(value) => self.spans.insert(span, value),
            None => self.spans.remove(&span),
        };
        Undo::Span(span, before)
    }

    pub(crate) fn set_end(&mut self, item: u32, end: Option<End>) -> Option<Undo> {
        let at = self.ends.get_mut(index(item))?;
        Some(Undo::End(item, std::mem::replace(at, end)))
    }

    pub(crate) fn add_chunk(&mut self, chunk: Chunk) -> Undo {
        let before = self.ends.len();
        let after = index(chunk.from.saturating_add(chunk.len));
        self.chunks.push(chunk);
        self.ends.resize(after.max(before), None);
        Undo::Chunk(before)
    }

    pub(crate) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Counters(before) => self.counters = before,
            Undo::Span(span, Some(before)) => {
                self.spans.insert(span, before);
            }
            Undo::Span(span, None) => {
                self.spans.remove(&span);
            }
            Undo::End(item, before) => {
                if let Some(at) = self.ends.get_mut(index(item)) {
                    *at = before;
                }
            }
            Undo::Chunk(ends) => {
                self.chunks.pop();
                self.ends.truncate(ends);
            }
        }
    }
}

impl Short {
    pub(crate) fn of(failure: &Failure) -> Self {
        let end = failure.message.char_indices().nth(MESSAGE_MAX).map(|(place, _)| place);
        Self {
            kind: failure.kind.clone(),
            message: failure.message[..end.unwrap_or(failure.message.len())].to_owned(),
            retryable: failure.retryable,
        }
    }
}

/// An item's place as an index.
pub(crate) fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}
