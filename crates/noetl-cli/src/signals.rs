//! Handles signals: stop requests, and a signal that must not end the process.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Stop requests: SIGINT from Ctrl-C, or SIGTERM from a supervisor.
///
/// Create it once and reuse it, so that a signal between two calls of [`next`](Self::next) is not
/// lost.
pub(crate) struct StopRequests {
    interrupt: Signal,
    terminate: Signal,
}

impl StopRequests {
    /// Installs the signal handlers. Before that, a signal ends the process immediately.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate })
    }

    /// Waits for the next stop request.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Turns a write beyond the file size limit into an error, like that of a full disk. Without the
/// handler, SIGXFSZ would end the process.
pub(crate) fn survive_file_size_limit() {
    // The handler stays installed after the listener is dropped. If it can't be installed, the
    // default applies.
    let _ = signal(SignalKind::from_raw(Number::XFSZ.as_raw()));
}
