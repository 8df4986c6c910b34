//! Metrics of subscriptions, reported by the processes that run them.
//!
//! Paths come from registered documents, so only a limited number have their own series. A backlog
//! reading that is not renewed is removed from the page, so autoscalers don't act on outdated
//! numbers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noetl_work::MessageCounts;
use prometheus::{IntCounterVec, IntGaugeVec};

/// Maximum number of subscriptions with their own series.
const NAMED_MAX: usize = 256;

/// Lifetime of a backlog reading. Runtimes report one every ten seconds.
const READING_MAX: Duration = Duration::from_secs(60);

/// Backlog and message metrics, by subscription.
pub struct SubscriptionMetrics {
    backlog: IntGaugeVec,
    messages: IntCounterVec,
    /// Subscriptions with their own series, and the time of their last backlog reading.
    named: Mutex<HashMap<String, Option<Instant>>>,
}

impl SubscriptionMetrics {
    pub(crate) fn new(backlog: IntGaugeVec, messages: IntCounterVec) -> Self {
        Self { backlog, messages, named: Mutex::default() }
    }

    /// Sets the number of messages waiting at the source of a subscription.
    pub fn set_backlog(&self, path: &str, waiting: u64) {
        let mut named = self.lock();
        // Subscriptions that share a series report no backlog.
        let Some(told) = slot(&mut named, path) else { return };
        *told = Some(Instant::now());
        let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
        self.backlog.with_label_values(&[path]).set(waiting);
    }

    /// Removes the backlog of a source that is no longer observed.
    pub fn clear_backlog(&self, path: &str) {
        if let Some(told) = self.lock().get_mut(path) {
            *told = None;
            let _ = self.backlog.remove_label_values(&[path]);
        }
    }

    /// Adds numbers of messages of a subscription.
    pub fn add(&self, path: &str, counts: MessageCounts) {
        let label = if slot(&mut self.lock(), path).is_some() { path } else { "other" };
        for (outcome, count) in counts.by_label() {
            self.messages.with_label_values(&[label, outcome]).inc_by(count);
        }
    }

    /// Removes backlog readings that were not renewed within [`READING_MAX`].
    pub(crate) fn forget_old(&self) {
        self.forget(Instant::now());
    }

    fn forget(&self, now: Instant) {
        for (path, told) in self.lock().iter_mut() {
            if told.is_some_and(|told| now.saturating_duration_since(told) > READING_MAX) {
                *told = None;
                let _ = self.backlog.remove_label_values(&[path.as_str()]);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<Instant>>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the entry of a subscription with its own series, or `None` if the limit is reached.
fn slot<'a>(
    named: &'a mut HashMap<String, Option<Instant>>,
    path: &str,
) -> Option<&'a mut Option<Instant>> {
    if !named.contains_key(path) && named.len() >= NAMED_MAX {
        return None;
    }
    Some(named.entry(path.to_owned()).or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn a_reading_that_is_not_renewed_leaves_the_page() {
        let (metrics, before) = (Metrics::new(), Instant::now());
        metrics.subscriptions.set_backlog("sub/a", 7);
        let line = "noetl_subscription_backlog{subscription=\"sub/a\"} 7";
        assert!(metrics.text().contains(line));
        metrics.subscriptions.forget(before + READING_MAX);
        assert!(metrics.text().contains(line), "not yet");
        metrics.subscriptions.forget(Instant::now() + READING_MAX + Duration::from_secs(1));
        assert!(!metrics.text().contains("noetl_subscription_backlog{"));
        metrics.subscriptions.set_backlog("sub/a", 8);
        metrics.subscriptions.clear_backlog("sub/a");
        assert!(!metrics.text().contains("noetl_subscription_backlog{"));
    }

    #[test]
    fn only_so_many_have_a_series_of_their_own() {
        let metrics = Metrics::new();
        let counts = MessageCounts { received: 1, ..MessageCounts::default() };
        for number in 0..NAMED_MAX + 50 {
            metrics.subscriptions.add(&format!("sub/{number}"), counts);
            metrics.subscriptions.set_backlog(&format!("sub/{number}"), 1);
        }
        let page = metrics.text();
        let backlogs = page.lines().filter(|line| line.starts_with("noetl_subscription_backlog{"));
        assert_eq!(backlogs.count(), NAMED_MAX);
        let rest =
            "noetl_subscription_messages_total{outcome=\"received\",subscription=\"other\"} 50";
        assert!(page.lines().any(|line| line == rest), "{page}");
    }
}
