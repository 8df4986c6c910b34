//! Leases, cursors, timers, streams, and registries of a [`FaultyStore`].

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{DueId, ExecutionId, ScheduleId, SubscriptionId, Tenant, Timestamp};
use noetl_store::tail::Lane;
use noetl_store::{
    Advanced, Cursors, Due, DueRow, Lease, Leases, NewNote, NewRuntime, NewSchedule,
    NewSubscription, Noted, Outbox, OutboxRow, Reserved, RuntimeFilter, RuntimeKind, RuntimeRow,
    Runtimes, ScheduleRow, Schedules, Snapshot, Snapshots, Stamp, StoreError, SubscriptionAction,
    SubscriptionRow, SubscriptionState, Subscriptions, Tail, TailRow,
};

use super::FaultyStore;
use super::interceptor::forward;

forward! { Leases {
    fn acquire(name: &str, holder: &str, ttl: Duration) -> Option<Lease>;
    fn renew(lease: &Lease, ttl: Duration) -> bool;
    fn release(lease: &Lease) -> bool;
    fn lease(name: &str) -> Option<Lease>;
    fn live(prefix: &str) -> Vec<Lease>;
    fn acquire_any(
        prefix: &str, numbers: Range<u16>, holder: &str, ttl: Duration,
    ) -> Option<(u16, Lease)>;
} }

forward! { Cursors {
    fn cursor(name: &str) -> Option<i64>;
    fn advance(name: &str, position: i64, fence: Option<&Lease>) -> Advanced;
} }

forward! { Snapshots {
    fn snapshot(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> Option<Snapshot>;
    fn save(
        tenant: &Tenant, aggregate_type: &str, aggregate_id: &str, snapshot: Snapshot,
    ) -> bool;
    fn forget(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> bool;
} }

forward! { Due {
    fn take_due(limit: usize, lease_for: Duration) -> Vec<DueRow>;
    fn next_due() -> Option<Timestamp>;
    fn done(ids: &[DueId]) -> usize;
    fn put_off(id: DueId, until: Timestamp) -> bool;
    fn have_sent(kind: &str, executions: &[ExecutionId]) -> Vec<ExecutionId>;
    fn due_of(execution: ExecutionId) -> Vec<DueRow>;
} }

forward! { Outbox {
    fn claim_within(limit: usize, bytes: usize) -> Vec<OutboxRow>;
    fn mark_published(ids: &[i64]) -> usize;
    fn mark_failed(id: i64, error: &str, delay: Duration) -> bool;
    fn pending() -> u64;
    fn purge_published(older_than: Duration) -> usize;
} }

forward! { Runtimes {
    fn register_runtime(tenant: &Tenant, runtime: NewRuntime) -> RuntimeRow;
    fn heartbeat(tenant: &Tenant, kind: RuntimeKind, name: &str) -> Option<Duration>;
    fn runtimes(tenant: &Tenant, filter: &RuntimeFilter) -> Vec<RuntimeRow>;
    fn deregister(tenant: &Tenant, kind: RuntimeKind, name: &str) -> bool;
    fn purge_stale(older_than: Duration) -> usize;
} }

forward! { Subscriptions {
    fn register_subscription(tenant: &Tenant, new: NewSubscription) -> SubscriptionRow;
    fn subscription(tenant: &Tenant, id: SubscriptionId) -> Option<SubscriptionRow>;
    fn subscriptions(tenant: &Tenant) -> Vec<SubscriptionRow>;
    fn logs_of_subscriptions(logs: &[ExecutionId]) -> HashSet<ExecutionId>;
    fn subscription_counts() -> Vec<(SubscriptionState, u64)>;
    fn transition(
        tenant: &Tenant, id: SubscriptionId, from: SubscriptionState, action: SubscriptionAction,
        stamp: Stamp,
    ) -> Option<SubscriptionRow>;
    fn note_subscription(tenant: &Tenant, id: SubscriptionId, note: NewNote) -> Option<Noted>;
    fn reserve(
        tenant: &Tenant, subscription: SubscriptionId, key: &str, execution: ExecutionId,
        window: Duration,
    ) -> Reserved;
    fn unreserve(
        tenant: &Tenant, subscription: SubscriptionId, key: &str, execution: ExecutionId,
    ) -> bool;
    fn prune_reserved(older_than: Duration) -> usize;
} }

forward! { Schedules {
    fn put_schedule(tenant: &Tenant, schedule: NewSchedule) -> ScheduleRow;
    fn schedule(tenant: &Tenant, id: ScheduleId) -> Option<ScheduleRow>;
    fn schedules(tenant: &Tenant) -> Vec<ScheduleRow>;
    fn ready_schedules(limit: usize) -> Vec<ScheduleRow>;
    fn next_schedule() -> Option<Timestamp>;
    fn fix_run(
        tenant: &Tenant, id: ScheduleId, due: Timestamp, execution: ExecutionId,
    ) -> Option<ExecutionId>;
    fn move_on(
        tenant: &Tenant, id: ScheduleId, due: Timestamp, next: Option<Timestamp>, status: &str,
    ) -> bool;
    fn remove_schedule(tenant: &Tenant, id: ScheduleId) -> bool;
} }

forward! { Tail {
    fn lanes() -> Vec<Lane>;
    fn tail(lane: u16, after: i64, limit: usize) -> Vec<TailRow>;
    fn tail_adopted(after: i64, limit: usize) -> Vec<TailRow>;
} }
