//! Removes announcements of commands that workers claimed over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_bus::StreamState;
use tokio::time::Instant;
use tracing::warn;

use super::{Announcer, Memory, STREAM};

impl Announcer {
    /// Removes announcements of commands that workers claimed over HTTP, because an autoscaler that
    /// reads the consumer's lag would start workers for them. If other commands of the pool are
    /// still pending, this happens once they are the minority: all announcements are removed, and
    /// those commands are announced again.
    pub(super) async fn discard_overtaken(
        &self,
        memory: &mut Memory,
        found: &StreamState,
        waiting: &BTreeMap<Arc<str>, u64>,
    ) {
        // The stream was read first: a command announced later has a larger sequence number.
        for pool in memory.ensured.clone() {
            let count = waiting.get(&pool).copied().unwrap_or(0);
            let overtaken = self.routes.pending(&pool, &found.consumers).saturating_sub(count);
            if overtaken <= count {
                continue;
            }
            for filter in self.routes.filters(&pool) {
                if let Err(error) = self.bus.discard(STREAM, &filter, found.last).await {
                    warn!(%pool, %error, "failed to discard stale announcements");
                    return;
                }
            }
            if count > 0 {
                memory.tries.retry_now(Instant::now());
            }
        }
    }
}
