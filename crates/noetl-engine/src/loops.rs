//! State of one loop: its items, the items in flight, and the outcomes of the others.
//!
//! A loop may have 100,000 items, so every change here is small, and so is its undo entry
//! ([`LoopUndo`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_model::loops::{FrameSizes, LoopStarted, LoopStats};
use noetl_model::{Failure, FailureKind};
use noetl_template::{Data, ValueList, ValueSlot, ValueSource, from_json_owned};

use crate::values::StoredValue;

/// Maximum length, in characters, of a failure message in the loop's list of errors.
const MESSAGE_MAX: usize = 500;

/// State of an active loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoopState {
    pub(crate) counters: LoopCounters,
    /// Step whose arc led to the loop.
    pub(crate) from: Option<Arc<str>>,
    /// Frame sizes, if templates define them.
    pub(crate) frame: Option<FrameSizes>,
    /// Items, in the chunks in which they were recorded.
    pub(crate) chunks: Vec<Chunk>,
    /// Outcome of each item; `None` while the item has not ended.
    pub(crate) ends: Vec<Option<ItemOutcome>>,
    /// Items that run as one group, by frame: all items of a collection, or the rows of a frame.
    pub(crate) spans: BTreeMap<u32, ItemRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LoopCounters {
    /// Number of items; `None` for a cursor.
    pub(crate) total: Option<u32>,
    pub(crate) max_in_flight: u32,
    /// Number of items whose command is open.
    pub(crate) open: u32,
    pub(crate) done: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
    /// Number of open claims of rows.
    pub(crate) claims: u32,
    pub(crate) frames: u32,
    /// Number of frames that had rows.
    pub(crate) full_frames: u32,
    /// Whether a claim found no row.
    pub(crate) drained: bool,
    /// Index of the item that failed first.
    pub(crate) first_failed: Option<u32>,
    /// Approximate size of the items and results stored inline, in bytes.
    pub(crate) bytes: usize,
}

/// Items that were recorded together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) from: u32,
    pub(crate) len: u32,
    pub(crate) items: StoredValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ItemOutcome {
    Done(StoredValue),
    Failed(Arc<ItemFailure>),
    Skipped,
}

/// Part of an item's failure that the state stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemFailure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) retryable: bool,
}

/// Items that run as one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemRange {
    pub(crate) first: u32,
    pub(crate) rows: u32,
    pub(crate) next: u32,
    pub(crate) open: u32,
    pub(crate) failed: u32,
}

/// Value that one change replaced.
#[derive(Debug)]
pub(crate) enum LoopUndo {
    Counters(LoopCounters),
    Span(u32, Option<ItemRange>),
    End(u32, Option<ItemOutcome>),
    /// A chunk was added. Holds the previous number of outcomes.
    Chunk(usize),
}

impl LoopState {
    pub(crate) fn new(started: &LoopStarted) -> Self {
        let total = started.total;
        let counters =
            LoopCounters { total, max_in_flight: started.max_in_flight, ..LoopCounters::default() };
        let mut spans = BTreeMap::new();
        if let Some(rows) = total.filter(|rows| *rows > 0) {
            spans.insert(0, ItemRange { first: 0, rows, next: 0, open: 0, failed: 0 });
        }
        let ends = vec![None; index(total.unwrap_or(0))];
        let (from, frame) = (started.from.clone(), started.frame);
        Self { counters, from, frame, chunks: Vec::new(), ends, spans }
    }

    /// Returns the chunk that contains an item, and the item's offset in it.
    pub(crate) fn place_of(&self, item: u32) -> Option<(&ValueSlot, usize)> {
        let after = self.chunks.partition_point(|chunk| chunk.from <= item);
        let chunk = self.chunks.get(after.checked_sub(1)?)?;
        let offset = item - chunk.from;
        (offset < chunk.len).then(|| (&chunk.items.slot, index(offset)))
    }

    /// Returns the key of an item's group in `spans`: its frame, or 0 for a collection.
    pub(crate) fn span_of(&self, frame: Option<u32>) -> u32 {
        frame.unwrap_or(0)
    }

    /// Returns `true` if no command of the loop is open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.counters.open == 0 && self.counters.claims == 0
    }

    /// Returns `true` if all items have ended and no more will follow.
    pub(crate) fn is_over(&self) -> bool {
        let all_given = self.spans.values().all(|span| span.next >= span.rows);
        self.is_quiet() && all_given && (self.counters.total.is_some() || self.counters.drained)
    }

    pub(crate) fn stats(&self) -> LoopStats {
        let LoopCounters { done: success, failed, .. } = self.counters;
        let total = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        LoopStats { total, success, failed, skipped: total.saturating_sub(success + failed) }
    }

    /// Returns the failure of a loop that stops at its first failed item.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let first = self.counters.first_failed?;
        let Some(Some(ItemOutcome::Failed(short))) = self.ends.get(index(first)) else {
            return None;
        };
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

    /// Returns the loop's result, with the approximate size of its inline values in bytes.
    pub(crate) fn result(&self) -> StoredValue {
        let mut results = Vec::with_capacity(self.ends.len());
        let mut errors = Vec::new();
        let mut bytes = 512;
        for (place, end) in self.ends.iter().enumerate() {
            results.push(match end {
                Some(ItemOutcome::Done(stored)) => {
                    bytes += stored.bytes;
                    stored.slot.clone()
                }
                Some(ItemOutcome::Failed(short)) => {
                    errors.push(serde_json::json!({
                        "index": place,
                        "error": {
                            "kind": short.kind,
                            "message": short.message,
                            "retryable": short.retryable,
                        },
                    }));
                    bytes += 128 + short.message.len();
                    ValueSlot::Held(Data::from(()))
                }
                Some(ItemOutcome::Skipped) | None => ValueSlot::Held(Data::from(())),
            });
        }
        let stats = serde_json::json!(self.stats());
        let fields: [(Arc<str>, ValueSource); 3] = [
            (Arc::from("results"), ValueSource::List(Arc::new(ValueList::new(results)))),
            (Arc::from("stats"), ValueSource::Held(from_json_owned(stats))),
            (Arc::from("errors"), ValueSource::Held(from_json_owned(errors.into()))),
        ];
        StoredValue { slot: ValueSlot::fields(fields), bytes }
    }

    pub(crate) fn set_counters(&mut self, change: impl FnOnce(&mut LoopCounters)) -> LoopUndo {
        let before = self.counters;
        change(&mut self.counters);
        LoopUndo::Counters(before)
    }

    pub(crate) fn set_span(&mut self, span: u32, value: Option<ItemRange>) -> LoopUndo {
        let before = match value {
            Some(value) => self.spans.insert(span, value),
            None => self.spans.remove(&span),
        };
        LoopUndo::Span(span, before)
    }

    pub(crate) fn set_end(&mut self, item: u32, end: Option<ItemOutcome>) -> Option<LoopUndo> {
        let at = self.ends.get_mut(index(item))?;
        Some(LoopUndo::End(item, std::mem::replace(at, end)))
    }

    pub(crate) fn add_chunk(&mut self, chunk: Chunk) -> LoopUndo {
        let before = self.ends.len();
        let after = index(chunk.from.saturating_add(chunk.len));
        self.chunks.push(chunk);
        self.ends.resize(after.max(before), None);
        LoopUndo::Chunk(before)
    }

    pub(crate) fn undo(&mut self, undo: LoopUndo) {
        match undo {
            LoopUndo::Counters(before) => self.counters = before,
            LoopUndo::Span(span, Some(before)) => {
                self.spans.insert(span, before);
            }
            LoopUndo::Span(span, None) => {
                self.spans.remove(&span);
            }
            LoopUndo::End(item, before) => {
                if let Some(at) = self.ends.get_mut(index(item)) {
                    *at = before;
                }
            }
            LoopUndo::Chunk(ends) => {
                self.chunks.pop();
                self.ends.truncate(ends);
            }
        }
    }
}

impl ItemFailure {
    pub(crate) fn from_failure(failure: &Failure) -> Self {
        let end = failure.message.char_indices().nth(MESSAGE_MAX).map(|(place, _)| place);
        Self {
            kind: failure.kind.clone(),
            message: failure.message[..end.unwrap_or(failure.message.len())].to_owned(),
            retryable: failure.retryable,
        }
    }
}

/// Converts an item number to an index.
pub(crate) fn index(place: u32) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX)
}
