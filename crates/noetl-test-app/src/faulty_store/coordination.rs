//! Leases, cursors, timers, streams, and registries of a [`FaultyStore`].

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{ExecutionId, ScheduleId, SubscriptionId, Tenant, TimerId, Timestamp};
use noetl_store::tail::Lane;
use noetl_store::{
    CursorStore, CursorUpdate, DedupOutcome, EventStamp, Lease, LeaseStore, LogTail, NewRuntime,
    NewRuntimeEvent, NewSchedule, NewSubscription, OutboxRow, OutboxStore, RuntimeEventOutcome,
    RuntimeFilter, RuntimeKind, RuntimeRow, RuntimeStore, ScheduleRow, ScheduleStore, Snapshot,
    SnapshotStore, StoreError, SubscriptionAction, SubscriptionRow, SubscriptionState,
    SubscriptionStore, TailRow, TimerRow, TimerStore,
};

use super::FaultyStore;
use super::interceptor::forward;

forward! { LeaseStore {
    fn acquire(name: &str, holder: &str, ttl: Duration) -> Option<Lease>;
    fn renew(lease: &Lease, ttl: Duration) -> bool;
    fn release(lease: &Lease) -> bool;
    fn lease(name: &str) -> Option<Lease>;
    fn live(prefix: &str) -> Vec<Lease>;
    fn acquire_any(
        prefix: &str, numbers: Range<u16>, holder: &str, ttl: Duration,
    ) -> Option<(u16, Lease)>;
} }

forward! { CursorStore {
    fn cursor(name: &str) -> Option<i64>;
    fn advance(name: &str, position: i64, fence: Option<&Lease>) -> CursorUpdate;
} }

forward! { SnapshotStore {
    fn snapshot(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> Option<Snapshot>;
    fn save(
        tenant: &Tenant, aggregate_type: &str, aggregate_id: &str, snapshot: Snapshot,
    ) -> bool;
    fn forget(tenant: &Tenant, aggregate_type: &str, aggregate_id: &str) -> bool;
} }

forward! { TimerStore {
    fn claim_due(limit: usize, lease_for: Duration) -> Vec<TimerRow>;
    fn next_due() -> Option<Timestamp>;
    fn delete_timers(ids: &[TimerId]) -> usize;
    fn reschedule(id: TimerId, until: Timestamp) -> bool;
    fn with_pending_timer(kind: &str, executions: &[ExecutionId]) -> Vec<ExecutionId>;
    fn timers_of(execution: ExecutionId) -> Vec<TimerRow>;
} }

forward! { OutboxStore {
    fn claim_within(limit: usize, bytes: usize) -> Vec<OutboxRow>;
    fn mark_published(ids: &[i64]) -> usize;
    fn mark_failed(id: i64, error: &str, delay: Duration) -> bool;
    fn pending() -> u64;
    fn purge_published(older_than: Duration) -> usize;
} }

forward! { RuntimeStore {
    fn register_runtime(tenant: &Tenant, runtime: NewRuntime) -> RuntimeRow;
    fn heartbeat(tenant: &Tenant, kind: RuntimeKind, name: &str) -> Option<Duration>;
    fn runtimes(tenant: &Tenant, filter: &RuntimeFilter) -> Vec<RuntimeRow>;
    fn deregister(tenant: &Tenant, kind: RuntimeKind, name: &str) -> bool;
    fn purge_stale(older_than: Duration) -> usize;
} }

forward! { SubscriptionStore {
    fn register_subscription(tenant: &Tenant, new: NewSubscription) -> SubscriptionRow;
    fn subscription(tenant: &Tenant, id: SubscriptionId) -> Option<SubscriptionRow>;
    fn subscriptions(tenant: &Tenant) -> Vec<SubscriptionRow>;
    fn logs_of_subscriptions(logs: &[ExecutionId]) -> HashSet<ExecutionId>;
    fn subscription_counts() -> Vec<(SubscriptionState, u64)>;
    fn transition(
        tenant: &Tenant, id: SubscriptionId, from: SubscriptionState, action: SubscriptionAction,
        stamp: EventStamp,
    ) -> Option<SubscriptionRow>;
    fn note_subscription(tenant: &Tenant, id: SubscriptionId, note: NewRuntimeEvent) -> Option<RuntimeEventOutcome>;
    fn reserve(
        tenant: &Tenant, subscription: SubscriptionId, key: &str, execution: ExecutionId,
        window: Duration,
    ) -> DedupOutcome;
    fn unreserve(
        tenant: &Tenant, subscription: SubscriptionId, key: &str, execution: ExecutionId,
    ) -> bool;
    fn prune_reserved(older_than: Duration) -> usize;
} }

forward! { ScheduleStore {
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

forward! { LogTail {
    fn lanes() -> Vec<Lane>;
    fn tail(lane: u16, after: i64, limit: usize) -> Vec<TailRow>;
    fn tail_adopted(after: i64, limit: usize) -> Vec<TailRow>;
} }
