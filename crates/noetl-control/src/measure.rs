//! Refreshes gauges that are read from the store.

use noetl_store::SubscriptionState;

use crate::ControlPlane;

impl ControlPlane {
    /// Reads the gauges whose values are in the store. A gauge that cannot be read keeps its last
    /// value.
    pub async fn measure(&self) {
        self.journal.metrics.set_spans(self.journal.traces.counts());
        match self.store.pending().await {
            Ok(pending) => {
                self.journal.metrics.outbox_pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
            }
            Err(_) => self.journal.metrics.scrape_errors.inc(),
        }
        match self.store.pending_by_pool().await {
            Ok(pools) => self.journal.metrics.set_pending(&pools),
            Err(_) => self.journal.metrics.scrape_errors.inc(),
        }
        match self.store.subscription_counts().await {
            Ok(counts) => {
                for state in SubscriptionState::ALL {
                    let state_count = counts.iter().find(|(counted, _)| *counted == state);
                    let count = state_count.map_or(0, |(_, count)| *count);
                    let gauge = self
                        .journal
                        .metrics
                        .subscription_state
                        .with_label_values(&[state.as_str()]);
                    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
                }
            }
            Err(_) => self.journal.metrics.scrape_errors.inc(),
        }
    }
}
