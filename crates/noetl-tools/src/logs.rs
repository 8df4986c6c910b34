//! Where a tool's printed lines go while it runs.

use std::fmt;
use std::sync::Arc;

/// Which of a program's two output streams a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// What it answers with.
    Stdout,
    /// What it complains with.
    Stderr,
}

impl Stream {
    /// The stream's usual name.
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

/// Receives what a tool prints, as `(stream, text)`, in order per stream.
///
/// A text is one or more whole lines, or the unfinished last one. It is called from the task that
/// reads the program's pipe, so it must not block: hand the text to a bounded queue and drop when
/// that is full. Cloning is one reference count; the default discards.
#[derive(Clone, Default)]
pub struct LogSink(Option<Arc<Receive>>);

type Receive = dyn Fn(Stream, &str) + Send + Sync;

impl LogSink {
    /// A sink that calls `receive` for every text.
    pub fn new(receive: impl Fn(Stream, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    /// Whether anybody listens; lets a tool skip making texts for nobody.
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
