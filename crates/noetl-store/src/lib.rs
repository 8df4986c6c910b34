//! What the services ask of a store, by caller.
//!
//! The traits speak the model's types; their guarantees are in the doc comments, and the
//! conformance suite is their specification. The memory store keeps everything in one process;
//! the adapters keep it on disk.

mod catalog;
mod clock;
pub mod commands;
mod cursors;
mod due;
mod error;
mod event_log;
mod executions;
pub mod leases;
mod memory;
pub mod outbox;
mod runtimes;
mod schedules;
mod snapshots;
pub mod subscriptions;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use catalog::{Catalog, CatalogEntry, NewEntry};
pub use clock::{StoreClock, SystemClock};
pub use commands::{CommandChange, CommandRow, Commands};
pub use cursors::{Advanced, Cursors};
pub use due::{Due, DueRow, NewDue};
pub use error::{BackendError, StoreError};
pub use event_log::{Append, Committed, EventLog, Held, Malformed, Start, Unshared};
pub use executions::{ExecutionFilter, ExecutionRow, ExecutionStatus, Executions, path_contains};
pub use leases::{Lease, Leases};
pub use memory::MemoryStore;
pub use outbox::{Outbox, OutboxOptions, OutboxRow};
pub use runtimes::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, Runtimes};
pub use schedules::{NewSchedule, ScheduleRow, Schedules};
pub use snapshots::{Snapshot, Snapshots, checksum};
pub use subscriptions::{
    NewSubscription, Reserved, SubscriptionAction, SubscriptionRow, SubscriptionState,
    Subscriptions,
};

/// Everything a control plane keeps in one place.
pub trait Store:
    EventLog
    + Executions
    + Commands
    + Catalog
    + Leases
    + Cursors
    + Snapshots
    + Due
    + Outbox
    + Runtimes
    + Subscriptions
    + Schedules
{
}

impl<S> Store for S where
    S: EventLog
        + Executions
        + Commands
        + Catalog
        + Leases
        + Cursors
        + Snapshots
        + Due
        + Outbox
        + Runtimes
        + Subscriptions
        + Schedules
{
}
