//! Loops of a compiled playbook.

use std::sync::Arc;

use noetl_model::loops::FrameSizes;
use noetl_template::ValueTemplate;

use crate::tool::Tool;

/// Loop of a step: its work runs once per item.
#[derive(Debug)]
pub struct LoopSpec {
    /// Name of the item in templates.
    pub iterator: Arc<str>,
    /// Collection or cursor that provides the items.
    pub over: LoopSource,
    /// Whether items run sequentially or in parallel.
    pub mode: LoopMode,
    /// Maximum number of items, or of frames of a cursor, in flight.
    pub max_in_flight: Option<ValueTemplate>,
    pub exec: LoopExec,
    /// Effect of the first failed item.
    pub failure: FailureMode,
}

/// Source of a loop's items.
#[derive(Debug)]
pub enum LoopSource {
    /// A value, rendered once (`in`).
    Items(ValueTemplate),
    /// A statement that claims rows until it returns none (`cursor`).
    Cursor(Box<Cursor>),
}

/// A loop over rows claimed from a database.
#[derive(Debug)]
pub struct Cursor {
    /// Tool that claims rows. Its templates may use `__frame_max_rows`.
    pub claim: Tool,
    /// Sizes and unit of work for claimed rows.
    pub frame: FrameSpec,
}

/// Processing of rows that were claimed together.
#[derive(Debug)]
pub struct FrameSpec {
    /// Literal sizes, and defaults for the others.
    pub sizes: FrameSizes,
    /// Templated sizes, rendered on entry to the step.
    pub templates: Vec<(FrameSize, ValueTemplate)>,
    /// Whether a command gets all rows of the frame as a list instead of a single row.
    pub whole: bool,
}

/// Name of a frame size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSize {
    MaxRows,
    RowConcurrency,
    MaxAttempts,
}

impl FrameSize {
    pub const ALL: [Self; 3] = [Self::MaxRows, Self::RowConcurrency, Self::MaxAttempts];

    /// Returns the key in the playbook.
    pub const fn key(self) -> &'static str {
        match self {
            Self::MaxRows => "max_rows",
            Self::RowConcurrency => "row_concurrency",
            Self::MaxAttempts => "max_attempts",
        }
    }

    /// Returns the field of `sizes` with this name.
    pub const fn size_mut(self, sizes: &mut FrameSizes) -> &mut u32 {
        match self {
            Self::MaxRows => &mut sizes.max_rows,
            Self::RowConcurrency => &mut sizes.row_concurrency,
            Self::MaxAttempts => &mut sizes.max_attempts,
        }
    }
}

/// Order in which a loop's items run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoopMode {
    /// Runs one item at a time.
    #[default]
    Sequential,
    /// Runs up to `max_in_flight` items at a time.
    Parallel,
}

/// Location where a loop's iterations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoopExec {
    #[default]
    Distributed,
    /// Runs all iterations in a single command on a single worker.
    Local,
}

/// Effect of a failure on parallel work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureMode {
    #[default]
    FailFast,
    /// The other branches or items run to completion.
    BestEffort,
}
