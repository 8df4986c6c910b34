//! The shared store: a Postgres database that several processes use concurrently.
//!
//! A batch of the journal is one statement, regardless of its size: a database function locks the
//! executions in ID order, appends the chains that match their logs, and returns the outcome of the
//! others. Reads run concurrently on a connection pool. The store uses no session state, so a
//! transaction-pooling proxy may be in between. The schema is in `migrations/`, queries are in
//! `queries/`; no other crate depends on the tables.

mod append_mode;
mod arrays;
mod blobs;
mod catalog;
mod client;
mod column;
mod commands;
mod console;
mod credentials;
mod cursors;
mod due;
mod error;
mod event_log;
mod event_rows;
mod executions;
mod grants;
mod holdings;
mod imports;
mod inspect;
mod keychain;
mod leases;
mod listen;
mod lock;
mod logs;
mod migrate;
mod objects;
mod options;
mod outbox;
mod outbox_rows;
mod partitions;
mod plugins;
mod result_store;
mod retention;
mod row_pages;
mod runtimes;
mod schedules;
mod sealed_rows;
mod secret_audit;
mod snapshots;
mod store;
mod subscriptions;
mod tail;
mod tokens;
mod transient;
mod writer;

pub use error::OpenError;
pub use inspect::{Schema, schema};
pub use options::Options;
pub use store::PostgresStore;
