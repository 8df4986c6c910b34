//! Metrics of publishing to the event stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use noetl_model::{Clock, Timestamp};

use noetl_journal::Metrics;

/// Metrics shared by all publishers of a process.
pub(crate) struct StreamMetrics {
    pub(crate) metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    /// Time of the oldest unpublished row, by database.
    oldest: Mutex<BTreeMap<Arc<str>, Timestamp>>,
}

impl StreamMetrics {
    pub(crate) fn new(metrics: Arc<Metrics>, clock: Arc<dyn Clock>) -> Self {
        Self { metrics, clock, oldest: Mutex::default() }
    }

    pub(crate) fn add_published(&self, label: &str) {
        self.metrics.stream_published.with_label_values(&[label]).inc();
    }

    pub(crate) fn add_skipped(&self, label: &str) {
        self.metrics.stream_skipped.with_label_values(&[label]).inc();
    }

    pub(crate) fn add_referenced(&self, label: &str) {
        self.metrics.stream_referenced.with_label_values(&[label]).inc();
    }

    pub(crate) fn set_cursor(&self, database: &str, name: &str, position: i64) {
        let cursor = format!("{database}/{name}");
        self.metrics.stream_cursor.with_label_values(&[&*cursor]).set(position);
    }

    /// Records the oldest unpublished row of a database, and updates the age of the oldest of all.
    pub(crate) fn set_oldest(&self, database: &Arc<str>, oldest: Option<Timestamp>) {
        let mut known = self.oldest.lock().unwrap_or_else(PoisonError::into_inner);
        match oldest {
            Some(oldest) => known.insert(database.clone(), oldest),
            None => known.remove(database),
        };
        let age = known.values().min().map(|oldest| self.clock.now().since(*oldest));
        self.metrics.stream_lag_seconds.set(age.unwrap_or_default().as_secs_f64());
    }
}
