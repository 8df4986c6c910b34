//! Loops of a compiled playbook.

use std::sync::Arc;

use noetl_model::repeat::FrameSizes;

use super::Tool;
use crate::template::ValueTemplate;

/// Work once per item.
#[derive(Debug)]
pub struct Loop {
    /// The name of the item in templates.
    pub iterator: Arc<str>,
    /// Where items come from.
    pub over: Over,
    /// Whether items run beside each other.
    pub mode: LoopMode,
    /// How many run at a time, or frames of a cursor.
    pub max_in_flight: Option<ValueTemplate>,
    pub exec: LoopExec,
    /// What the first failed item does.
    pub failure: FailureMode,
}

/// Where a loop's items come from.
#[derive(Debug)]
pub enum Over {
    /// A value, rendered once (`in`).
    Items(ValueTemplate),
    /// A statement that claims rows until it returns none (`cursor`).
    Cursor(Box<Cursor>),
}

/// Rows claimed from a database.
#[derive(Debug)]
pub struct Cursor {
    /// The tool that claims; its templates may name `__frame_max_rows`.
    pub claim: Tool,
    /// How claimed rows are worked on.
    pub frame: Frame,
}

/// Rows that were claimed together.
#[derive(Debug)]
pub struct Frame {
    /// Its sizes, where they are written out.
    pub sizes: FrameSizes,
    /// Sizes that are known only when the step is entered.
    pub templates: Vec<(FrameSize, ValueTemplate)>,
    /// Whether a command gets one row, or all rows of the frame as a list.
    pub whole: bool,
}

/// A size of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameSize {
    /// `max_rows`
    MaxRows,
    /// `row_concurrency`
    RowConcurrency,
    /// `max_attempts`
    MaxAttempts,
}

impl FrameSize {
    pub const ALL: [Self; 3] = [Self::MaxRows, Self::RowConcurrency, Self::MaxAttempts];

    /// The key it is written under.
    pub const fn key(self) -> &'static str {
        match self {
            Self::MaxRows => "max_rows",
            Self::RowConcurrency => "row_concurrency",
            Self::MaxAttempts => "max_attempts",
        }
    }

    /// Its place among the sizes.
    pub const fn of(self, sizes: &mut FrameSizes) -> &mut u32 {
        match self {
            Self::MaxRows => &mut sizes.max_rows,
            Self::RowConcurrency => &mut sizes.row_concurrency,
            Self::MaxAttempts => &mut sizes.max_attempts,
        }
    }
}

/// Whether a loop's items run beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoopMode {
    /// One after the other.
    #[default]
    Sequential,
    /// Up to a number at a time.
    Parallel,
}

/// Where a loop's iterations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoopExec {
    #[default]
    Distributed,
    /// All within one command, by one worker.
    Local,
}

/// What a failure does to the work beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureMode {
    #[default]
    FailFast,
    /// The rest goes on to its end.
    BestEffort,
}
