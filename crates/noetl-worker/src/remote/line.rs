//! Connection to the server, over which it pushes commands.
//!
//! One task holds the connection and reconnects. Completions without an ack are sent again on the
//! next connection, and commands that wait for a slot stay leased. If the server has no connections
//! for workers, commands are leased with long polls instead, and the task tries to connect from time
//! to time.

mod outgoing;
mod talk;
mod task;

use std::sync::Arc;

use noetl_api::completions::CompletionItem;
use noetl_api::connection::{FRAME_MAX, LogBatch, ReportedCompletion};
use serde_json::value::RawValue;
use tokio::sync::{Mutex, mpsc, oneshot, watch};

pub(crate) use self::task::LineTask;
use super::lend::OwnedCommand;
use super::reporter::ReportReply;
use crate::task::CommandTask;

/// Maximum number of completions and step logs that wait for the connection.
const QUEUE_MAX: usize = 1024;

/// Maximum size in bytes of a completion or of step logs on the connection. Larger ones are sent
/// over HTTP.
const ITEM_MAX: usize = FRAME_MAX - 4096;

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineState {
    Connecting,
    Connected,
    /// The server has no connections for workers, or this worker doesn't use them.
    Unsupported,
}

/// A command that this worker leases, ready to run.
type RunnableCommand = (CommandTask, OwnedCommand);

/// Completions and step logs to send, with their waiters.
enum Outgoing {
    Completion(Box<OutgoingCompletion>),
    Logs { batch: Box<RawValue>, answer: oneshot::Sender<bool> },
}

struct OutgoingCompletion {
    id: String,
    item: Box<RawValue>,
    /// Whether the command's slot can receive the next command.
    takes_next: bool,
    answer: oneshot::Sender<ReportReply>,
}

/// Handle of the connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Line {
    state: watch::Receiver<LineState>,
    outgoing: mpsc::Sender<Outgoing>,
    commands: Arc<Mutex<mpsc::Receiver<RunnableCommand>>>,
}

/// Ends of the connection's channels, for its task.
pub(crate) struct LineEnds {
    state: watch::Sender<LineState>,
    outgoing: mpsc::Receiver<Outgoing>,
    commands: mpsc::Sender<RunnableCommand>,
}

impl Line {
    /// Creates a connection in this state, for a worker with this number of slots.
    pub(crate) fn new(state: LineState, slots: usize) -> (Self, LineEnds) {
        let (state, current) = watch::channel(state);
        let (outgoing, sent) = mpsc::channel(QUEUE_MAX);
        let (pushed, commands) = mpsc::channel(slots.max(1));
        let line = Self { state: current, outgoing, commands: Arc::new(Mutex::new(commands)) };
        (line, LineEnds { state, outgoing: sent, commands: pushed })
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> LineState {
        *self.state.borrow()
    }

    /// Waits for pushed commands, and returns up to `free` of them. Returns `None` while the server
    /// has no connections for workers.
    ///
    /// Cancellation safe: dropping the future loses no command.
    pub(crate) async fn take(&self, free: usize) -> Option<Vec<RunnableCommand>> {
        let mut commands = self.commands.lock().await;
        let mut state = self.state.clone();
        let mut taken = Vec::new();
        loop {
            while taken.len() < free
                && let Ok(lent) = commands.try_recv()
            {
                if !lent.1.holding.lost.is_cancelled() {
                    taken.push(lent);
                }
            }
            if !taken.is_empty() {
                return Some(taken);
            }
            tokio::select! {
                biased;
                Some(lent) = commands.recv() => taken.push(lent),
                ended = state.wait_for(|state| *state == LineState::Unsupported) => {
                    drop(ended);
                    return None;
                }
            }
        }
    }

    /// Reports a completion until the server acknowledges it. Returns `None` if it has to be
    /// reported over HTTP.
    pub(super) async fn report(
        &self,
        id: String,
        end: &CompletionItem,
        takes_next: bool,
    ) -> Option<ReportReply> {
        if self.state() == LineState::Unsupported {
            return None;
        }
        let reported = ReportedCompletion::from_item(id.clone(), end.clone());
        let item = serde_json::value::to_raw_value(&reported).ok()?;
        if item.get().len() > ITEM_MAX {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let completion = OutgoingCompletion { id, item, takes_next, answer };
        self.outgoing.send(Outgoing::Completion(Box::new(completion))).await.ok()?;
        answered.await.ok()
    }

    /// Sends step logs. Returns `false` if they have to be sent over HTTP.
    pub(super) async fn print(&self, batch: &LogBatch) -> bool {
        if self.state() != LineState::Connected {
            return false;
        }
        let Ok(batch) = serde_json::value::to_raw_value(batch) else { return false };
        if batch.get().len() > ITEM_MAX {
            return false;
        }
        let (answer, answered) = oneshot::channel();
        let sent = self.outgoing.send(Outgoing::Logs { batch, answer }).await;
        sent.is_ok() && answered.await.unwrap_or(false)
    }
}
