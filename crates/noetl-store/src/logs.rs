//! What steps print.
//!
//! Lines are no events: they decide nothing, and not all of them are kept. Of each command the first
//! and the newest lines stay, and what went in between is counted. Lines are numbered per execution
//! as they come, so that whoever reads them can go on where it was.

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, Timestamp};

use crate::StoreError;

/// Bytes of a command's first lines that are kept. With [`TAIL_BYTES`] they make a mebibyte.
pub const HEAD_BYTES: u64 = 512 << 10;

/// Bytes of a command's newest lines that are kept.
pub const TAIL_BYTES: u64 = 512 << 10;

/// What goes at once when a tail has grown too long, so that not every line costs a removal.
const TAIL_SLACK: u64 = TAIL_BYTES / 8;

/// What a line costs besides its text, so that empty lines are not without end.
pub const LINE_COST: u64 = 64;

/// The longest line, in bytes; what is longer is cut by whoever hands it in.
pub const LINE_BYTES_MAX: usize = 16 << 10;

/// Bytes of all lines of one execution that are kept; what comes later is only counted. A loop may
/// have a hundred thousand commands.
pub const EXECUTION_BYTES_MAX: u64 = 256 << 20;

/// Where a line was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl LogStream {
    /// The stored and wire text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }

    /// The stream of this text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Out, Self::Err].into_iter().find(|stream| stream.as_str() == text)
    }
}

/// A line on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLine {
    /// The command that printed it.
    pub command: CommandId,
    pub at: Timestamp,
    pub stream: LogStream,
    /// The line without its end, at most [`LINE_BYTES_MAX`] bytes.
    pub text: String,
}

impl NewLine {
    /// What it counts for.
    pub fn cost(&self) -> u64 {
        LINE_COST + u64::try_from(self.text.len()).unwrap_or(u64::MAX - LINE_COST)
    }
}

/// A line that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its number among the lines of its execution: 1, 2, 3 …, with gaps where lines went.
    pub n: u64,
    pub line: NewLine,
}

/// Lines of a command that went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogGap {
    pub command: CommandId,
    /// The number of the last of its first lines; 0 when it has none.
    pub after: u64,
    pub lines: u64,
    /// How much they counted for.
    pub bytes: u64,
}

/// Lines of a command that were never handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedOver {
    pub command: CommandId,
    pub lines: u64,
    /// How much they would have counted for.
    pub bytes: u64,
}

/// Which lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Only those of this command.
    pub command: Option<CommandId>,
    /// Only those with a larger number.
    pub after: u64,
    /// How many at most.
    pub limit: usize,
}

/// What is kept of one command's lines. Every store goes by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeptLines {
    /// The number of the last of its first lines.
    pub head_until: u64,
    /// What its first lines count for.
    pub head_bytes: u64,
    /// What its newest lines count for.
    pub tail_bytes: u64,
    /// Lines that went.
    pub gap_lines: u64,
    /// What they counted for.
    pub gap_bytes: u64,
}

impl KeptLines {
    /// Counts a line that is kept.
    pub fn add(&mut self, n: u64, cost: u64) {
        let is_head = self.tail_bytes == 0 && self.gap_lines == 0;
        if is_head && self.head_bytes + cost <= HEAD_BYTES {
            self.head_until = n;
            self.head_bytes += cost;
        } else {
            self.tail_bytes += cost;
        }
    }

    /// Counts lines that are not kept.
    pub fn pass_over(&mut self, lines: u64, cost: u64) {
        self.gap_lines = self.gap_lines.saturating_add(lines);
        self.gap_bytes = self.gap_bytes.saturating_add(cost);
    }

    /// How much of the tail has to go at least; nothing while it is not too long.
    pub fn excess(&self) -> u64 {
        if self.tail_bytes <= TAIL_BYTES {
            return 0;
        }
        self.tail_bytes - (TAIL_BYTES - TAIL_SLACK)
    }

    /// Counts lines that went from the front of the tail.
    pub fn cut(&mut self, lines: u64, bytes: u64) {
        self.tail_bytes = self.tail_bytes.saturating_sub(bytes);
        self.gap_lines += lines;
        self.gap_bytes += bytes;
    }

    /// What went, if anything did.
    pub fn gap(&self, command: CommandId) -> Option<LogGap> {
        let (lines, bytes) = (self.gap_lines, self.gap_bytes);
        (lines > 0).then_some(LogGap { command, after: self.head_until, lines, bytes })
    }
}

/// Lines by execution.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Appends lines to an execution's, in order. No line becomes visible after one with a larger
    /// number. The number of the last; nothing is kept of an execution that there is not.
    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError>;

    /// Counts lines that were lost before they could be handed in, as what went. Whether there is such
    /// an execution.
    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<PassedOver>,
    ) -> Result<bool, StoreError>;

    /// Lines of an execution in the order of their numbers.
    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError>;

    /// What went of an execution's lines, or of one command's, in the order of commands.
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
        let mut kept = KeptLines::default();
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
        let mut kept = KeptLines { head_bytes: HEAD_BYTES, ..KeptLines::default() };
        kept.add(2, TAIL_BYTES);
        assert_eq!(kept.excess(), 0);
        kept.add(3, 100);
        assert_eq!(kept.excess(), 100 + TAIL_SLACK);
    }
}
