//! Queue of commands that the journal leaves for the announcer. The journal never blocks on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use noetl_model::event::CommandSpec;
use noetl_model::trace::{SpanId, TraceContext};
use noetl_model::{CommandId, DEFAULT_POOL, ExecutionId};
use noetl_store::CommandRow;
use tokio::sync::mpsc;

/// Capacity of the queue. A scan finds the commands that did not fit.
const QUEUE: usize = 16 * 1024;

/// Pending command to announce to workers.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingAnnouncement {
    pub execution: ExecutionId,
    pub command: CommandId,
    pub step: Arc<str>,
    pub pool: Arc<str>,
    /// Trace context of the command's span, if known. `None` for a command read from its row, which
    /// has no trace.
    pub trace: Option<TraceContext>,
}

impl PendingAnnouncement {
    pub fn from_row(row: &CommandRow) -> Self {
        Self {
            execution: row.execution,
            command: row.id,
            step: row.step.clone(),
            pool: row.pool.clone(),
            trace: None,
        }
    }

    pub(crate) fn issued(execution: ExecutionId, command: CommandId, issued: &CommandSpec) -> Self {
        let pool = issued.pool.clone().unwrap_or_else(|| Arc::from(DEFAULT_POOL));
        let trace = issued.trace.clone();
        let trace = trace.map(|trace| TraceContext::new(trace, SpanId::of_command(command)));
        Self { execution, command, step: issued.step.clone(), pool, trace }
    }
}

/// Queue that the journal adds committed commands to. Cheap to clone.
#[derive(Clone, Default)]
pub struct AnnouncementQueue {
    sender: Arc<Mutex<Option<mpsc::Sender<PendingAnnouncement>>>>,
    missed: Arc<AtomicBool>,
}

impl AnnouncementQueue {
    /// Returns `true` if an announcer is running.
    pub(crate) fn is_on(&self) -> bool {
        self.lock().is_some()
    }

    /// Queues a command to be announced. Sets the flag of [`missed`](Self::missed) if the queue is
    /// full.
    pub(crate) fn enqueue(&self, note: PendingAnnouncement) {
        let is_full = self.lock().as_ref().is_some_and(|sender| sender.try_send(note).is_err());
        if is_full {
            self.missed.store(true, Ordering::Release);
        }
    }

    /// Returns the flag that is set when a command did not fit into the queue. The announcer clears
    /// it.
    pub fn take_overflowed(&self) -> Arc<AtomicBool> {
        self.missed.clone()
    }

    pub fn begin(&self) -> mpsc::Receiver<PendingAnnouncement> {
        let (sender, notes) = mpsc::channel(QUEUE);
        *self.lock() = Some(sender);
        notes
    }

    pub fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<PendingAnnouncement>>> {
        // Every critical section is one call that cannot panic halfway.
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(command: i64) -> PendingAnnouncement {
        PendingAnnouncement {
            execution: ExecutionId::new(1),
            command: CommandId::new(command),
            step: Arc::from("a"),
            pool: Arc::from("shared"),
            trace: None,
        }
    }

    #[test]
    fn a_full_queue_is_reported_without_blocking() {
        let notes = AnnouncementQueue::default();
        notes.enqueue(note(1));
        assert!(!notes.is_on() && !notes.take_overflowed().load(Ordering::Acquire));
        let mut left = notes.begin();
        for command in 0..=i64::try_from(QUEUE).unwrap() {
            notes.enqueue(note(command));
        }
        assert!(notes.take_overflowed().load(Ordering::Acquire));
        assert_eq!(left.try_recv(), Ok(note(0)));
        notes.end();
        assert!(!notes.is_on());
    }
}
