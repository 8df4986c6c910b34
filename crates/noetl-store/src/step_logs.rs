//! Step logs: the lines that steps print.
//!
//! Lines are not events: they affect no decision, and not all of them are stored. For each command,
//! the store retains the first and the newest lines and counts those dropped in between. Lines are
//! numbered per execution in order of arrival, so that a reader can resume after the last one it
//! has read.

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Timestamp};

use crate::StoreError;

/// Maximum size of a command's first lines, in bytes. With [`TAIL_BYTES`], 1 MiB in total.
pub const HEAD_BYTES: u64 = 512 << 10;

/// Maximum size of a command's newest lines, in bytes.
pub const TAIL_BYTES: u64 = 512 << 10;

/// Number of extra bytes to drop when the newest lines exceed their limit, so that not every line
/// causes a deletion.
const TAIL_SLACK: u64 = TAIL_BYTES / 8;

/// Bytes charged per line in addition to its text, so that empty lines are limited too.
pub const LINE_COST: u64 = 64;

/// Maximum length of a line, in bytes. The caller truncates longer lines.
pub const LINE_BYTES_MAX: usize = 16 << 10;

/// Maximum size of all lines of one execution, in bytes; later lines are only counted. A loop may
/// have 100,000 commands.
pub const EXECUTION_BYTES_MAX: u64 = 256 << 20;

/// Stream that a line was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogStream {
    /// Standard output of the tool.
    Out,
    /// Standard error of the tool.
    Err,
}

impl LogStream {
    /// Returns the text stored and sent on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }

    /// Returns the stream with this text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Out, Self::Err].into_iter().find(|stream| stream.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// Command that printed the line.
    pub command: CommandId,
    pub at: Timestamp,
    pub stream: LogStream,
    /// Text without the line terminator, at most [`LINE_BYTES_MAX`] bytes.
    pub text: String,
}

impl NewLine {
    /// Returns the number of bytes charged for the line.
    pub fn cost(&self) -> u64 {
        LINE_COST + u64::try_from(self.text.len()).unwrap_or(u64::MAX - LINE_COST)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Number of the line within its execution, from 1, with gaps where lines were dropped.
    pub n: u64,
    pub line: NewLine,
}

/// Dropped lines of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogGap {
    pub command: CommandId,
    /// Number of the last of the command's first lines; 0 if there are none.
    pub after: u64,
    pub lines: u64,
    /// Number of bytes that the lines were charged.
    pub bytes: u64,
}

/// Lines of a command that never reached the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedLines {
    pub command: CommandId,
    pub lines: u64,
    /// Number of bytes that the lines would have been charged.
    pub bytes: u64,
}

/// Selection of lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Includes only lines of this command.
    pub command: Option<CommandId>,
    /// Includes only lines with a larger number.
    pub after: u64,
    /// Maximum number of lines to return.
    pub limit: usize,
}

/// Accounting of one command's lines. Every store applies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogBudget {
    /// Number of the last of the first lines.
    pub head_until: u64,
    /// Bytes charged for the first lines.
    pub head_bytes: u64,
    /// Bytes charged for the newest lines.
    pub tail_bytes: u64,
    pub gap_lines: u64,
    /// Bytes charged for the dropped lines.
    pub gap_bytes: u64,
}

impl LogBudget {
    /// Counts a line that is stored.
    pub fn add(&mut self, n: u64, cost: u64) {
        let is_head = self.tail_bytes == 0 && self.gap_lines == 0;
        if is_head && self.head_bytes + cost <= HEAD_BYTES {
            self.head_until = n;
            self.head_bytes += cost;
        } else {
            self.tail_bytes += cost;
        }
    }

    /// Counts lines that are not stored.
    pub fn pass_over(&mut self, lines: u64, cost: u64) {
        self.gap_lines = self.gap_lines.saturating_add(lines);
        self.gap_bytes = self.gap_bytes.saturating_add(cost);
    }

    /// Returns the minimum number of bytes to drop from the newest lines; 0 while they are within
    /// their limit.
    pub fn excess(&self) -> u64 {
        if self.tail_bytes <= TAIL_BYTES {
            return 0;
        }
        self.tail_bytes - (TAIL_BYTES - TAIL_SLACK)
    }

    /// Counts lines that were dropped from the front of the newest ones.
    pub fn cut(&mut self, lines: u64, bytes: u64) {
        self.tail_bytes = self.tail_bytes.saturating_sub(bytes);
        self.gap_lines += lines;
        self.gap_bytes += bytes;
    }

    /// Returns the dropped lines, if there are any.
    pub fn gap(&self, command: CommandId) -> Option<LogGap> {
        let (lines, bytes) = (self.gap_lines, self.gap_bytes);
        (lines > 0).then_some(LogGap { command, after: self.head_until, lines, bytes })
    }
}

#[async_trait]
pub trait StepLogStore: Send + Sync {
    /// Appends lines to an execution's log, in order. No line becomes visible after one with a
    /// larger number. Returns the number of the last line, or `None` without storing anything if
    /// the execution does not exist.
    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError>;

    /// Counts lines that were lost before they reached the store as dropped. Returns `true` if the
    /// execution exists.
    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<SkippedLines>,
    ) -> Result<bool, StoreError>;

    /// Returns lines of an execution in order of their numbers.
    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError>;

    /// Returns the dropped lines of an execution, or of one command, in order of commands.
    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_fills_first_and_never_again() {
        let mut kept = LogBudget::default();
        kept.add(1, HEAD_BYTES);
        assert_eq!((kept.head_until, kept.tail_bytes), (1, 0));
        kept.add(2, 1);
        assert_eq!((kept.head_until, kept.tail_bytes), (1, 1));
        kept.cut(1, 1);
        kept.add(3, 1);
        assert_eq!((kept.head_until, kept.tail_bytes), (1, 1), "a gap is never filled");
    }

    #[test]
    fn a_tail_is_cut_with_room_for_more() {
        let mut kept = LogBudget { head_bytes: HEAD_BYTES, ..LogBudget::default() };
        kept.add(2, TAIL_BYTES);
        assert_eq!(kept.excess(), 0);
        kept.add(3, 100);
        assert_eq!(kept.excess(), 100 + TAIL_SLACK);
    }
}
