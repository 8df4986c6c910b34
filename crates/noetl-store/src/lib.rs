//! What the services ask of a store, by caller.
//!
//! The traits speak the model's types; their guarantees are in the doc comments, and the
//! conformance suite is their specification. The memory store keeps everything in one process;
//! the adapters keep it on disk.

mod catalog;
mod clock;
pub mod commands;
mod error;
mod event_log;
mod executions;
mod memory;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

pub use catalog::{Catalog, CatalogEntry, NewEntry};
pub use clock::SystemClock;
pub use commands::{CommandChange, CommandRow, Commands};
pub use error::{BackendError, StoreError};
pub use event_log::{Append, Committed, EventLog, Held, Malformed, Start, Unshared};
pub use executions::{ExecutionFilter, ExecutionRow, ExecutionStatus, Executions, path_contains};
pub use memory::MemoryStore;

/// Everything a control plane keeps in one place.
pub trait Store: EventLog + Executions + Commands + Catalog {}

impl<S: EventLog + Executions + Commands + Catalog> Store for S {}
