//! Storage traits of the control plane, one per area of use.
//!
//! The traits use the types of `noetl-model`. Their doc comments state their guarantees, and the
//! conformance suite is their specification. The memory store holds everything in one process, the
//! adapters store it on disk, and [`Sharded`] distributes executions over several stores.

mod audit_chain;
mod blob_ref;
mod blobs;
mod catalog;
mod clock;
mod command_lease_store;
pub mod command_leases;
pub mod commands;
mod credentials;
mod cursors;
pub mod database;
mod digest;
mod error;
mod event_log;
mod executions;
mod gc;
mod grants;
mod imports;
mod keychain;
pub mod leases;
mod memory;
mod objects;
pub mod outbox;
mod result_store;
pub mod retention;
mod runtimes;
mod schedules;
mod sealed_rows;
mod secret_audit;
mod secret_use;
mod services;
mod sharded;
mod snapshots;
mod spooled_file;
pub mod step_logs;
pub mod subscriptions;
mod tables;
pub mod tail;
mod timers;
mod tokens;
mod variables;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use audit_chain::{AuditChain, AuditHead, AuditHeadError, AuditLink};
pub use blob_ref::{BlobError, BlobRef};
pub use blobs::{BlobPage, BlobRefs, Blobs, StoredBlob};
pub use catalog::{CatalogEntry, CatalogHead, CatalogSize, CatalogStore, CatalogVersion, NewEntry};
pub use clock::{StoreClock, SystemClock};
pub use command_lease_store::CommandLeaseStore;
pub use command_leases::{ActiveLease, CommandFilter, HeldBy, HeldLimit};
pub use commands::CommandStore;
pub use credentials::{
    CredentialFilter, CredentialStore, NewCredential, SealedText, StoredCredential,
};
pub use cursors::{CursorStore, CursorUpdate};
pub use database::{Connections, Database, Sql, SqlError};
pub use digest::{Digest, DigestError};
pub use error::{BackendError, StoreError};
pub use event_log::{
    Append, Committed, EventLog, LockedLog, Malformed, ReadBound, StartAppend, UnsharedLog,
    first_after, row_bytes,
};
pub use executions::{
    ExecutionFilter, ExecutionRow, ExecutionStatus, ExecutionStore, StartCounts, TimeBuckets,
    path_contains,
};
pub use gc::{GcReport, collect_garbage};
pub use grants::{Grant, GrantKind, Grants, NewGrant};
pub use imports::{Import, ImportOutcome, ImportStore, ImportedExecution};
pub use keychain::{
    CacheKind, KeychainEntry, KeychainFilter, KeychainScope, KeychainStore, NewKeychainEntry,
};
pub use leases::{Lease, LeaseStore};
pub use memory::MemoryStore;
// The engine computes these, and stores write them.
pub use noetl_model::{CommandChange, CommandRow};
pub use objects::{Object, ObjectSummary, Objects, Plugin, PluginSummary, Plugins};
pub use outbox::{OutboxOptions, OutboxRow, OutboxStore};
pub use result_store::{NewResult, ResultStore, ResultSummary};
pub use retention::{RetentionPolicy, RetentionStore, RetentionWindow};
pub use runtimes::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, RuntimeStore};
pub use schedules::{NewSchedule, ScheduleRow, ScheduleStore};
pub use sealed_rows::{SealedLocation, SealedRecordStore, SealedRow};
pub use secret_audit::{AuditFilter, SecretAuditStore};
pub use secret_use::SecretUse;
pub use services::{
    DocumentStore, ExecutionDataStore, IdentityStore, JournalStore, PublishingStore, RemoteStore,
    SecretsStore, TriggerStore, ViewStore,
};
pub use sharded::{SHARDS_MAX, Sharded};
pub use snapshots::{Snapshot, SnapshotStore, checksum};
pub use spooled_file::{PIECE_BYTES, SpooledFile};
pub use step_logs::{LogGap, LogLine, LogQuery, LogStream, NewLine, SkippedLines, StepLogStore};
pub use subscriptions::{
    DedupOutcome, EventStamp, NewRuntimeEvent, NewSubscription, RuntimeEventOutcome,
    SubscriptionAction, SubscriptionRow, SubscriptionState, SubscriptionStore,
};
pub use tables::TableSize;
pub use tail::{LogTail, TailRow};
pub use timers::{NewTimer, TimerRow, TimerStore};
pub use tokens::{AccessToken, NewToken, TokenStore};
pub use variables::{NewVariable, Variable, VariableKind, VariableStore};

/// All storage of a control plane: that of its services, and retention.
pub trait Store:
    IdentityStore
    + DocumentStore
    + ExecutionDataStore
    + SecretsStore
    + JournalStore
    + RemoteStore
    + ViewStore
    + TriggerStore
    + PublishingStore
    + Blobs
    + RetentionStore
{
}

impl<S> Store for S where
    S: IdentityStore
        + DocumentStore
        + ExecutionDataStore
        + SecretsStore
        + JournalStore
        + RemoteStore
        + ViewStore
        + TriggerStore
        + PublishingStore
        + Blobs
        + RetentionStore
{
}
