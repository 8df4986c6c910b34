//! Signals: who asks the process to end, and what must not end it.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Requests to end: Ctrl-C, or a supervisor's word.
///
/// Made once and asked again and again, so that a signal between two questions is not lost.
pub(crate) struct StopRequests {
    interrupt: Signal,
    terminate: Signal,
}

impl StopRequests {
    /// Listens from here on; before, a signal ends the process by itself.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate })
    }

    /// Resolves at the next request.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Makes a write beyond the limit on file sizes an error like a full disk, where it would end the
/// process without a word.
pub(crate) fn survive_file_size_limit() {
    // The handler stays when the listener is dropped. Without one things are as they were.
    let _ = signal(SignalKind::from_raw(Number::XFSZ.as_raw()));
}
