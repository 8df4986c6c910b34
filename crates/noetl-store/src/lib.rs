//! What the services ask of a store, by caller.
//!
//! The traits speak the model's types; their guarantees are in the doc comments, and the
//! conformance suite is their specification. The memory store keeps everything in one process;
//! the adapters keep it on disk.

mod blobs;
mod catalog;
mod clock;
mod collect;
pub mod commands;
mod credentials;
mod digest;
mod error;
mod event_log;
mod executions;
mod keychain;
mod memory;
mod objects;
mod result_store;
mod secret_audit;
mod transient;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use blobs::{BlobError, BlobPage, BlobRef, BlobRefs, Blobs, StoredBlob};
pub use catalog::{Catalog, CatalogEntry, NewEntry};
pub use clock::SystemClock;
pub use collect::{Collected, collect};
pub use commands::{CommandChange, CommandRow, Commands};
pub use credentials::{Credential, CredentialFilter, Credentials, NewCredential, Sealed};
pub use digest::{Digest, DigestError};
pub use error::{BackendError, StoreError};
pub use event_log::{Append, Committed, EventLog, Malformed, Start};
pub use executions::{ExecutionFilter, ExecutionRow, ExecutionStatus, Executions, path_contains};
pub use keychain::{
    CacheKind, Keychain, KeychainEntry, KeychainFilter, KeychainScope, NewKeychainEntry,
};
pub use memory::MemoryStore;
pub use objects::{Object, ObjectSummary, Objects, Plugin, PluginSummary, Plugins};
pub use result_store::{NewResult, ResultStore, ResultSummary};
pub use secret_audit::{AuditFilter, SecretAudit, SecretUse};
pub use transient::{NewVariable, Transient, Variable, VariableKind};

/// What is kept beside the executions: secrets, variables, results, objects, content.
pub trait Keeping:
    Credentials
    + Keychain
    + SecretAudit
    + Transient
    + ResultStore
    + Objects
    + Plugins
    + Blobs
    + BlobRefs
{
}

impl<S> Keeping for S where
    S: Credentials
        + Keychain
        + SecretAudit
        + Transient
        + ResultStore
        + Objects
        + Plugins
        + Blobs
        + BlobRefs
{
}

/// Everything a control plane keeps in one place.
pub trait Store: EventLog + Executions + Commands + Catalog + Keeping {}

impl<S: EventLog + Executions + Commands + Catalog + Keeping> Store for S {}
