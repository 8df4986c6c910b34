//! Storage traits of the control plane, one per area of use.
//!
//! The traits use the types of `noetl-model`. Their doc comments state their guarantees, and the
//! conformance suite is their specification. The memory store holds everything in one process, the
//! adapters store it on disk, and [`Sharded`] distributes executions over several stores.

mod audit_chain;
mod blobs;
mod catalog;
mod clock;
mod collect;
pub mod commands;
mod credentials;
mod cursors;
pub mod database;
mod digest;
mod due;
mod error;
mod event_log;
mod executions;
mod grants;
pub mod holdings;
mod imports;
mod keychain;
pub mod leases;
pub mod logs;
mod memory;
mod objects;
pub mod outbox;
mod result_store;
pub mod retention;
mod runtimes;
mod schedules;
mod sealed_rows;
mod secret_audit;
mod sharded;
mod snapshots;
mod spooled;
pub mod subscriptions;
mod tables;
pub mod tail;
mod tokens;
mod transient;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use audit_chain::{AuditChain, AuditHead, AuditHeadError, AuditLink};
pub use blobs::{BlobError, BlobPage, BlobRef, BlobRefs, Blobs, StoredBlob};
pub use catalog::{Catalog, CatalogEntry, CatalogHead, CatalogSize, CatalogVersion, NewEntry};
pub use clock::{StoreClock, SystemClock};
pub use collect::{Collected, collect};
pub use commands::{CommandChange, CommandRow, Commands};
pub use credentials::{Credential, CredentialFilter, Credentials, NewCredential, Sealed};
pub use cursors::{Advanced, Cursors};
pub use database::{Connections, Database, Sql, SqlError};
pub use digest::{Digest, DigestError};
pub use due::{Due, DueRow, NewDue};
pub use error::{BackendError, StoreError};
pub use event_log::{
    Append, Committed, EventLog, Held, Malformed, Start, Unshared, Until, first_after, row_bytes,
};
pub use executions::{
    ExecutionFilter, ExecutionRow, ExecutionStatus, Executions, Started, Stretches, path_contains,
};
pub use grants::{Grant, GrantKind, Grants, NewGrant};
pub use holdings::{HeldBy, HeldCommand, HeldLimit, Holdings, Wanted};
pub use imports::{Import, ImportOutcome, ImportedExecution, Imports};
pub use keychain::{
    CacheKind, Keychain, KeychainEntry, KeychainFilter, KeychainScope, NewKeychainEntry,
};
pub use leases::{Lease, Leases};
pub use logs::{LogGap, LogLine, LogQuery, LogStream, Logs, NewLine, PassedOver};
pub use memory::MemoryStore;
pub use objects::{Object, ObjectSummary, Objects, Plugin, PluginSummary, Plugins};
pub use outbox::{Outbox, OutboxOptions, OutboxRow};
pub use result_store::{NewResult, ResultStore, ResultSummary};
pub use retention::{Policy, Retention, Window};
pub use runtimes::{NewRuntime, RuntimeFilter, RuntimeKind, RuntimeRow, Runtimes};
pub use schedules::{NewSchedule, ScheduleRow, Schedules};
pub use sealed_rows::{SealedPlace, SealedRow, SealedRows};
pub use secret_audit::{AuditFilter, SecretAudit, SecretUse};
pub use sharded::{SHARDS_MAX, Sharded};
pub use snapshots::{Snapshot, Snapshots, checksum};
pub use spooled::{PIECE_BYTES, Spooled};
pub use subscriptions::{
    NewNote, NewSubscription, Noted, Reserved, Stamp, SubscriptionAction, SubscriptionRow,
    SubscriptionState, Subscriptions,
};
pub use tables::TableSize;
pub use tail::{Tail, TailRow};
pub use tokens::{NewToken, Token, Tokens};
pub use transient::{NewVariable, Transient, Variable, VariableKind};

/// Auxiliary data: credentials, variables, results, step logs, objects, and blobs.
pub trait Keeping:
    Credentials
    + Keychain
    + SealedRows
    + SecretAudit
    + Tokens
    + Grants
    + Transient
    + ResultStore
    + Logs
    + Objects
    + Plugins
    + Blobs
    + BlobRefs
{
}

impl<S> Keeping for S where
    S: Credentials
        + Keychain
        + SealedRows
        + SecretAudit
        + Tokens
        + Grants
        + Transient
        + ResultStore
        + Logs
        + Objects
        + Plugins
        + Blobs
        + BlobRefs
{
}

/// All storage of a control plane.
pub trait Store:
    EventLog
    + Tail
    + Imports
    + Executions
    + Commands
    + Holdings
    + Catalog
    + Leases
    + Cursors
    + Snapshots
    + Due
    + Outbox
    + Runtimes
    + Subscriptions
    + Schedules
    + Keeping
    + Retention
    + Database
{
}

impl<S> Store for S where
    S: EventLog
        + Tail
        + Imports
        + Executions
        + Commands
        + Holdings
        + Holdings
        + Catalog
        + Leases
        + Cursors
        + Snapshots
        + Due
        + Outbox
        + Runtimes
        + Subscriptions
        + Schedules
        + Keeping
        + Retention
        + Database
        + Database
{
}
