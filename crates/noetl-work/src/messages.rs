//! What a subscription runtime reports about messages.

use noetl_model::Map;

/// Numbers of messages by outcome since the last report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Messages received from the source, including redelivered ones.
    pub received: u64,
    pub dispatched: u64,
    /// Messages that had started executions before.
    pub duplicate: u64,
    /// Messages that failed and are retried.
    pub failed: u64,
    pub dead_lettered: u64,
}

impl MessageCounts {
    /// Returns the numbers by label value.
    pub const fn by_label(self) -> [(&'static str, u64); 5] {
        [
            ("received", self.received),
            ("dispatched", self.dispatched),
            ("duplicate", self.duplicate),
            ("failed", self.failed),
            ("dead_lettered", self.dead_lettered),
        ]
    }
}

/// Message that could not be dispatched.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    pub message: String,
    /// Reason as a machine-readable code.
    pub code: String,
    /// Reason as a sentence for people.
    pub reason: String,
    pub attempts: u64,
    pub headers: Map,
    pub metadata: Map,
    pub body: Vec<u8>,
}
