//! Reading what waits in a stream, as one of its durable readers.

use std::time::Duration;

use async_trait::async_trait;

use crate::CommandBus;

/// A message that a reader was given and has to answer for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Where it was published.
    pub subject: String,
    pub payload: Vec<u8>,
    /// What the bus knows it by when it is answered for.
    pub receipt: String,
}

/// Why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The bus is not reached, or did not answer in time.
    #[error("the bus did not answer: {0}")]
    Away(String),
    /// The stream or one of the readers was never made, or is gone.
    #[error("there is no such reader")]
    NoReader,
}

/// A bus that can be read from by the readers that somebody else made: none is ever made here, so
/// that nobody reads something else under a name that others know.
#[async_trait]
pub trait CommandReader: CommandBus {
    /// Up to `max` messages of these readers of a stream: those that are there, or else the first
    /// that comes within `wait`, with what came along. None when the wait is over. Whoever else reads
    /// under the same names is given others.
    async fn next(
        &self,
        stream: &str,
        readers: &[String],
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Given>, ReadError>;

    /// Says of messages that they are dealt with. What is not heard of is given again after the
    /// reader's own time, so nothing is said of how that went.
    async fn done(&self, receipts: &[String]);

    /// Gives messages back, so that somebody else is given them at once.
    async fn again(&self, receipts: &[String]);
}
