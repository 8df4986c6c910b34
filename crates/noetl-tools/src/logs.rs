//! Sink for the output of a tool while it runs.

use std::fmt;
use std::sync::Arc;

/// Output stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// Returns the conventional name of the stream.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Receives the output of a tool as `(stream, text)`, in order per stream.
///
/// A text is one or more whole lines, or the unfinished last one. The function is called from the
/// task that reads the program's pipe, so it must not block: send the text to a bounded queue, and
/// drop the text if the queue is full. A clone only increments a reference count. The default
/// discards output.
#[derive(Clone, Default)]
pub struct LogSink(Option<Arc<Receive>>);

type Receive = dyn Fn(Stream, &str) + Send + Sync;

impl LogSink {
    /// Creates a sink that calls `receive` for every text.
    pub fn new(receive: impl Fn(Stream, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    /// Returns `true` if the sink has a receiver. Tools skip creating texts otherwise.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn send(&self, stream: Stream, text: &str) {
        if let Some(receive) = &self.0
            && !text.is_empty()
        {
            receive(stream, text);
        }
    }
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "LogSink(open)" } else { "LogSink(discards)" })
    }
}
