//! What a frail store answers beside the log: what its memory says, or nothing.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{DueId, ExecutionId, Tenant, Timestamp};
use noetl_store::{
    Advanced, Cursors, Due, DueRow, Lease, Leases, Outbox, OutboxRow, Snapshot, Snapshots,
    StoreError,
};

use super::FrailStore;

/// Passes every call on while the store is up.
macro_rules! pass_on {
    ($seam:ident {$(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;
    )*}) => {
        #[async_trait]
        impl $seam for FrailStore {$(
            async fn $name(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                self.answer()?;
                self.inner.$name($($argument),*).await
            }
        )*}
    };
}

pass_on! { Leases {
    fn acquire(name: &str, holder: &str, ttl: Duration) -> Option<Lease>;
    fn renew(lease: &Lease, ttl: Duration) -> bool;
    fn release(lease: &Lease) -> bool;
    fn lease(name: &str) -> Option<Lease>;
    fn live(prefix: &str) -> Vec<Lease>;
    fn acquire_any(
        prefix: &str, numbers: Range<u16>, holder: &str, ttl: Duration,
    ) -> Option<(u16, Lease)>;
} }

pass_on! { Cursors {
    fn cursor(name: &str) -> Option<i64>;
    fn advance(name: &str, position: i64, fence: Option<&Lease>) -> Advanced;
} }

pass_on! { Snapshots {
    fn snapshot(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> Option<Snapshot>;
    fn save(
        tenant: &Tenant, aggregate_type: &str, aggregate_id: &str, snapshot: Snapshot,
    ) -> bool;
    fn forget(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> bool;
} }

pass_on! { Due {
    fn take_due(limit: usize, lease_for: Duration) -> Vec<DueRow>;
    fn next_due() -> Option<Timestamp>;
    fn done(ids: &[DueId]) -> usize;
    fn put_off(id: DueId, until: Timestamp) -> bool;
    fn due_of(execution: ExecutionId) -> Vec<DueRow>;
} }

pass_on! { Outbox {
    fn claim(limit: usize) -> Vec<OutboxRow>;
    fn mark_published(ids: &[i64]) -> usize;
    fn mark_failed(id: i64, error: &str, delay: Duration) -> bool;
    fn pending() -> u64;
} }
