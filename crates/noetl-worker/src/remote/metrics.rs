//! Metrics of a worker in the Prometheus text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct WorkerMetrics {
    claimed: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    late: AtomicU64,
    refused: AtomicU64,
    unanswered: AtomicU64,
    lines_dropped: AtomicU64,
    uploaded: AtomicU64,
    announcements: AtomicU64,
    running: AtomicU64,
    is_away: AtomicBool,
    is_connected: AtomicBool,
    has_bus: AtomicBool,
    is_bus_up: AtomicBool,
}

/// An event that increments a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerEvent {
    /// The worker claimed a command.
    Claimed,
    /// A command succeeded, and the server accepted its completion.
    Done,
    /// A command failed, and the server accepted its completion.
    Failed,
    /// A command was reassigned to another worker.
    Lost,
    /// The server received a completion after the command had ended.
    Late,
    /// The server rejected a completion.
    Refused,
    /// A request failed with a transient error.
    Unanswered,
    /// The worker dropped step log text.
    LineDropped,
    /// The worker uploaded a large result.
    Uploaded,
    /// The bus announced a command to this worker.
    Announced,
}

impl WorkerMetrics {
    pub(crate) fn count(&self, what: WorkerEvent) {
        let counter = match what {
            WorkerEvent::Claimed => &self.claimed,
            WorkerEvent::Done => &self.done,
            WorkerEvent::Failed => &self.failed,
            WorkerEvent::Lost => &self.lost,
            WorkerEvent::Late => &self.late,
            WorkerEvent::Refused => &self.refused,
            WorkerEvent::Unanswered => &self.unanswered,
            WorkerEvent::LineDropped => &self.lines_dropped,
            WorkerEvent::Uploaded => &self.uploaded,
            WorkerEvent::Announced => &self.announcements,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_running(&self, running: usize) {
        self.running.store(u64::try_from(running).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Records whether the server is unavailable. Returns `true` if that changed.
    pub(crate) fn set_server_unavailable(&self, is_away: bool) -> bool {
        self.is_away.swap(is_away, Ordering::Relaxed) != is_away
    }

    /// Returns `true` if the server did not respond to the last request.
    pub fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// Records whether the server pushes commands over a connection.
    pub(crate) fn set_connected(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::Relaxed);
    }

    /// Records that this worker is configured with a bus.
    pub(crate) fn set_bus(&self) {
        self.has_bus.store(true, Ordering::Relaxed);
    }

    /// Records whether announcements arrive. Returns `true` if that changed.
    pub(crate) fn set_bus_up(&self, is_bus_up: bool) -> bool {
        self.is_bus_up.swap(is_bus_up, Ordering::Relaxed) != is_bus_up
    }

    /// Returns `true` if announcements currently arrive, or `None` if no bus is configured.
    pub fn is_bus_up(&self) -> Option<bool> {
        let is_bus_up = self.is_bus_up.load(Ordering::Relaxed);
        self.has_bus.load(Ordering::Relaxed).then_some(is_bus_up)
    }

    /// Returns the number of commands that this worker leases.
    pub fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    /// Renders all metrics in the Prometheus text format.
    pub fn render(&self, slots: usize) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        let mut put = |name: &str, kind: &str, help: &str, value: u64| {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "# HELP noetl_worker_{name} {help}\n# TYPE noetl_worker_{name} {kind}\n\
                 noetl_worker_{name} {value}\n"
            );
        };
        let slots = u64::try_from(slots).unwrap_or(u64::MAX);
        put("slots", "gauge", "Maximum number of commands in flight.", slots);
        put("commands_running", "gauge", "Commands in flight on this worker.", self.running());
        let is_there = u64::from(!self.is_away());
        put("server_up", "gauge", "Whether the server responded to the last request.", is_there);
        let is_connected = u64::from(self.is_connected.load(Ordering::Relaxed));
        put("connected", "gauge", "Whether the server pushes commands.", is_connected);
        if let Some(is_bus_up) = self.is_bus_up() {
            put(
                "bus_up",
                "gauge",
                "Whether the worker receives announcements from the bus.",
                u64::from(is_bus_up),
            );
            let announcements = read(&self.announcements);
            put(
                "announcements_total",
                "counter",
                "Announcements received from the bus.",
                announcements,
            );
        }
        for (name, help, counter) in [
            ("commands_taken_total", "Commands claimed by this worker.", &self.claimed),
            ("commands_done_total", "Commands that succeeded.", &self.done),
            ("commands_failed_total", "Commands that failed.", &self.failed),
            ("commands_lost_total", "Commands reassigned to other workers.", &self.lost),
            ("reports_late_total", "Completions received after the command had ended.", &self.late),
            ("reports_refused_total", "Completions rejected by the server.", &self.refused),
            ("calls_unanswered_total", "Requests without a response.", &self.unanswered),
            ("texts_dropped_total", "Step log texts dropped by this worker.", &self.lines_dropped),
            ("results_uploaded_total", "Large results uploaded to the server.", &self.uploaded),
        ] {
            put(name, "counter", help, read(counter));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_rendered_under_their_names() {
        let counters = WorkerMetrics::default();
        counters.count(WorkerEvent::Lost);
        counters.count(WorkerEvent::Lost);
        counters.set_running(3);
        assert!(counters.set_server_unavailable(true));
        assert!(!counters.set_server_unavailable(true));
        assert!(!counters.render(16).contains("bus_up"), "there is no bus");
        counters.set_bus();
        counters.count(WorkerEvent::Announced);
        assert!(counters.set_bus_up(true) && !counters.set_bus_up(true));
        let text = counters.render(16);
        for line in [
            "noetl_worker_bus_up 1",
            "noetl_worker_announcements_total 1",
            "noetl_worker_slots 16",
            "noetl_worker_commands_running 3",
            "noetl_worker_server_up 0",
            "noetl_worker_commands_lost_total 2",
            "noetl_worker_commands_done_total 0",
        ] {
            assert!(text.lines().any(|rendered| rendered == line), "{line} in\n{text}");
        }
    }
}
