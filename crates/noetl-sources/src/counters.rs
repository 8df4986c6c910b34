//! Message counters of a runtime process, for its own metrics endpoint.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use noetl_work::MessageCounts;

/// Outcomes of all messages since the process started.
#[derive(Debug, Default)]
pub struct MessageCounters {
    counts: Mutex<MessageCounts>,
}

impl MessageCounters {
    pub(crate) fn add(&self, add: impl FnOnce(&mut MessageCounts)) {
        add(&mut self.lock());
    }

    pub fn counts(&self) -> MessageCounts {
        *self.lock()
    }

    /// Renders the counters in the Prometheus text format.
    pub fn render(&self) -> String {
        let name = "noetl_runtime_messages_total";
        let mut page = format!(
            "# HELP {name} Messages this process dealt with, by what became of them\n\
             # TYPE {name} counter\n"
        );
        for (outcome, count) in self.counts().by_label() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(page, "{name}{{outcome=\"{outcome}\"}} {count}");
        }
        page
    }

    fn lock(&self) -> MutexGuard<'_, MessageCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_page_lists_every_outcome() {
        let tally = MessageCounters::default();
        tally.add(|counts| counts.dispatched += 2);
        let page = tally.render();
        assert!(
            page.contains("noetl_runtime_messages_total{outcome=\"dispatched\"} 2\n"),
            "{page}"
        );
        assert_eq!(page.lines().count(), 2 + MessageCounts::default().by_label().len());
    }
}
