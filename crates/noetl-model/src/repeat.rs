//! What happens in a loop: its items, the frames of a cursor, its end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Value;

/// Something that happened to a loop of one visit.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopFact {
    /// The step that loops.
    pub step: Arc<str>,
    /// Which visit of it.
    pub generation: u32,
    pub what: LoopEvent,
}

/// What happened to a loop.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopEvent {
    Started(LoopStarted),
    /// Items were recorded: of the collection it goes through, or rows that were claimed.
    Items(LoopItems),
    /// A frame of rows is being claimed, or has ended.
    Frame(FrameMoved),
    /// No row is left to claim, and all frames have ended.
    StageClosed(StageClosed),
    /// Its last item has ended.
    Done(LoopStats),
}

/// How a loop began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopStarted {
    /// How many items there are; `None` for rows that are claimed as it goes.
    #[serde(rename = "collection_size", default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// How many items, or frames, may be worked on at a time.
    pub max_in_flight: u32,
    /// The step whose arc led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Arc<str>>,
    /// Sizes of its frames, when templates gave them.
    #[serde(rename = "frame_sizes", default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameSizes>,
}

/// How the rows of a cursor are cut into frames and worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSizes {
    /// How many rows are claimed at a time.
    pub max_rows: u32,
    /// How many rows of a frame run at a time.
    pub row_concurrency: u32,
    /// How often a row runs before it counts as failed.
    pub max_attempts: u32,
}

impl Default for FrameSizes {
    /// One row at a time, tried once.
    fn default() -> Self {
        Self { max_rows: 1, row_concurrency: 1, max_attempts: 1 }
    }
}

/// Items in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopItems {
    /// The place of the first, from 0.
    pub from: u32,
    pub items: Vec<Value>,
    /// The frame they were claimed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
}

/// A frame of rows moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameMoved {
    /// Which, from 0.
    pub frame: u32,
    pub to: FrameState,
    /// How many rows it has.
    pub rows: u32,
}

/// How a frame stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameState {
    /// Its rows are being claimed.
    Dispatched,
    /// All its rows ended well; without rows, none were left.
    Committed,
    Failed,
}

/// What a cursor came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageClosed {
    /// Frames that had rows.
    #[serde(rename = "frame_count")]
    pub frames: u32,
    /// Rows that were claimed.
    #[serde(rename = "row_count")]
    pub rows: u32,
    /// Rows that failed.
    #[serde(rename = "failed_count")]
    pub failed: u32,
}

/// How a loop's items ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoopStats {
    pub total: u32,
    /// Those that ended well.
    pub success: u32,
    pub failed: u32,
    /// Those that never ran, because an earlier one failed.
    pub skipped: u32,
}

/// The name of a loop of one visit on the wire.
pub fn loop_name(step: &str, generation: u32) -> String {
    format!("{step}:{generation}")
}

/// An item of a loop, as a command's end names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemOf {
    /// Which visit of its step.
    pub generation: u32,
    /// Its place, from 0.
    pub index: u32,
    /// How many there are, if that is known.
    pub total: Option<u32>,
    /// The frame it was claimed with.
    pub frame: Option<u32>,
}
