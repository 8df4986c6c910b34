//! Snapshot form of a loop's state.

use std::sync::Arc;

use noetl_model::FailureKind;
use noetl_model::loops::FrameSizes;
use serde::{Deserialize, Serialize};

use super::super::SnapshotError;
use super::slot::SlotShape;
use crate::loops::{Chunk, ItemFailure, ItemOutcome, ItemRange, LoopCounters, LoopState};

#[derive(Serialize, Deserialize)]
pub(super) struct LoopShape {
    step: Arc<str>,
    #[serde(rename = "generation")]
    run: u32,
    total: Option<u32>,
    max_in_flight: u32,
    open: u32,
    done: u32,
    failed: u32,
    skipped: u32,
    claims: u32,
    frames: u32,
    full_frames: u32,
    drained: bool,
    first_failed: Option<u32>,
    from: Option<Arc<str>>,
    chunks: Vec<(u32, u32, SlotShape)>,
    ends: Vec<ItemOutcomeShape>,
    spans: Vec<(u32, [u32; 5])>,
    /// Frame sizes: `max_rows`, `row_concurrency`, and `max_attempts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frame: Option<[u32; 3]>,
}

/// Outcome of an item in the shortest form: most items have succeeded or not ended.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ItemOutcomeShape {
    #[serde(rename = "o")]
    Open,
    #[serde(rename = "d")]
    Done(SlotShape),
    #[serde(rename = "f")]
    Failed(FailureKind, String, bool),
    #[serde(rename = "s")]
    Skipped,
}

impl LoopShape {
    pub(super) fn from_loop(((step, run), repeat): (&(Arc<str>, u32), &LoopState)) -> Self {
        let counters = &repeat.counters;
        let chunk =
            |chunk: &Chunk| (chunk.from, chunk.len, SlotShape::from_slot(&chunk.items.slot));
        let span = |(frame, span): (&u32, &ItemRange)| {
            (*frame, [span.first, span.rows, span.next, span.open, span.failed])
        };
        Self {
            step: step.clone(),
            run: *run,
            total: counters.total,
            max_in_flight: counters.max_in_flight,
            open: counters.open,
            done: counters.done,
            failed: counters.failed,
            skipped: counters.skipped,
            claims: counters.claims,
            frames: counters.frames,
            full_frames: counters.full_frames,
            drained: counters.drained,
            first_failed: counters.first_failed,
            from: repeat.from.clone(),
            chunks: repeat.chunks.iter().map(chunk).collect(),
            ends: repeat.ends.iter().map(ItemOutcomeShape::from_outcome).collect(),
            spans: repeat.spans.iter().map(span).collect(),
            frame: repeat.frame.map(|f| [f.max_rows, f.row_concurrency, f.max_attempts]),
        }
    }

    pub(super) fn restored(self) -> Result<((Arc<str>, u32), LoopState), SnapshotError> {
        let mut bytes = 0;
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for (from, len, items) in self.chunks {
            let is_held = matches!(items, SlotShape::Held(_));
            let mut items = items.into_stored()?;
            if !is_held {
                items.bytes = 0;
            }
            bytes += items.bytes;
            chunks.push(Chunk { from, len, items });
        }
        let mut ends = Vec::with_capacity(self.ends.len());
        for end in self.ends {
            let end = end.restored()?;
            if let Some(ItemOutcome::Done(stored)) = &end {
                bytes += stored.bytes;
            }
            ends.push(end);
        }
        let span = |(frame, [first, rows, next, open, failed]): (u32, [u32; 5])| {
            (frame, ItemRange { first, rows, next, open, failed })
        };
        let counters = LoopCounters {
            total: self.total,
            max_in_flight: self.max_in_flight,
            open: self.open,
            done: self.done,
            failed: self.failed,
            skipped: self.skipped,
            claims: self.claims,
            frames: self.frames,
            full_frames: self.full_frames,
            drained: self.drained,
            first_failed: self.first_failed,
            bytes,
        };
        let spans = self.spans.into_iter().map(span).collect();
        let frame = self.frame.map(|[max_rows, row_concurrency, max_attempts]| FrameSizes {
            max_rows,
            row_concurrency,
            max_attempts,
        });
        let repeat = LoopState { counters, from: self.from, frame, chunks, ends, spans };
        Ok(((self.step, self.run), repeat))
    }
}

impl ItemOutcomeShape {
    fn from_outcome(end: &Option<ItemOutcome>) -> Self {
        match end {
            None => Self::Open,
            Some(ItemOutcome::Done(stored)) => Self::Done(SlotShape::from_slot(&stored.slot)),
            Some(ItemOutcome::Failed(short)) => {
                Self::Failed(short.kind.clone(), short.message.clone(), short.retryable)
            }
            Some(ItemOutcome::Skipped) => Self::Skipped,
        }
    }

    fn restored(self) -> Result<Option<ItemOutcome>, SnapshotError> {
        Ok(match self {
            Self::Open => None,
            Self::Done(kind) => Some(ItemOutcome::Done(kind.into_stored()?)),
            Self::Failed(kind, message, retryable) => {
                Some(ItemOutcome::Failed(Arc::new(ItemFailure { kind, message, retryable })))
            }
            Self::Skipped => Some(ItemOutcome::Skipped),
        })
    }
}
