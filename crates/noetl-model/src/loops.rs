//! Loop events: items, cursor frames, and loop completion.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Value;

/// An event of the loop of a step run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopFact {
    /// Step that the loop belongs to.
    pub step: Arc<str>,
    /// Number of the step run, from 1.
    pub run: u32,
    pub what: LoopEvent,
}

/// Kind of a loop event.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopEvent {
    Started(LoopStarted),
    /// Items were recorded: elements of the collection, or claimed rows.
    Items(LoopItems),
    /// The claim of a frame's rows started, or the frame ended.
    Frame(FrameTransition),
    /// No row is left to claim, and all frames have ended.
    StageClosed(StageClosed),
    /// All items have ended.
    Done(LoopStats),
}

/// Parameters of a loop at its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopStarted {
    /// Number of items. `None` for a cursor, whose rows are claimed as the loop proceeds.
    #[serde(rename = "collection_size", default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// Maximum number of items, or frames, in flight.
    pub max_in_flight: u32,
    /// Step whose arc led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Arc<str>>,
    /// Frame sizes, if templates determined them.
    #[serde(rename = "frame_sizes", default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameSizes>,
}

/// Sizes that control how a cursor's rows are claimed and processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSizes {
    /// Maximum number of rows per claim.
    pub max_rows: u32,
    /// Maximum number of rows of a frame in flight.
    pub row_concurrency: u32,
    /// Maximum number of attempts per row.
    pub max_attempts: u32,
}

impl Default for FrameSizes {
    /// Returns the defaults: a single row at a time, with a single attempt.
    fn default() -> Self {
        Self { max_rows: 1, row_concurrency: 1, max_attempts: 1 }
    }
}

/// Consecutive items of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopItems {
    /// Index of the first item, from 0.
    pub from: u32,
    pub items: Vec<Value>,
    /// Frame that the rows were claimed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
}

/// A state change of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTransition {
    /// Number of the frame, from 0.
    pub frame: u32,
    pub to: FrameState,
    /// Number of rows in the frame.
    pub rows: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameState {
    /// The frame's rows are being claimed.
    Dispatched,
    /// All rows of the frame succeeded. A frame without rows means that no rows were left.
    Committed,
    Failed,
}

/// Summary of a finished cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageClosed {
    /// Number of frames that had rows.
    #[serde(rename = "frame_count")]
    pub frames: u32,
    #[serde(rename = "row_count")]
    pub rows: u32,
    #[serde(rename = "failed_count")]
    pub failed: u32,
}

/// Summary of a finished loop, in numbers of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopStats {
    pub total: u32,
    /// Number of items that succeeded.
    pub success: u32,
    pub failed: u32,
    /// Number of items that did not run because an earlier one failed.
    pub skipped: u32,
}

/// Returns the wire name of the loop of a step run.
pub fn loop_name(step: &str, run: u32) -> String {
    format!("{step}:{run}")
}

/// Loop item that a completion refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopItemRef {
    /// Number of the step run, from 1.
    pub run: u32,
    /// Index of the item, from 0.
    pub index: u32,
    /// Total number of items, if known.
    pub total: Option<u32>,
    /// Frame that the row was claimed with.
    pub frame: Option<u32>,
}
