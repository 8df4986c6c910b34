//! Counters of exported and dropped spans.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of exported, dropped, and failed spans.
#[derive(Debug, Default)]
pub(crate) struct SpanCounters {
    pub(crate) exported: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl SpanCounters {
    pub(crate) fn add(counter: &AtomicU64, spans: usize) {
        counter.fetch_add(u64::try_from(spans).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
