//! The embedded store: one SQLite file, owned by one process.
//!
//! One thread writes through one connection and commits all queued requests in one transaction. A
//! few read-only connections read concurrently. Every commit is synced before it is acknowledged
//! ([`Synchronous::Full`]), and a process killed at any time leaves a readable file. The schema is
//! in `migrations/`, queries are in `queries/`; no other crate depends on the tables.

mod append;
mod append_log;
mod append_rows;
mod backup;
mod blobs;
mod catalog;
mod check;
mod checkpoint;
mod column;
mod commands;
mod connection;
mod credentials;
mod database;
mod decoded_event;
mod due;
mod encoded_append;
mod encoded_events;
mod error;
mod event_log;
mod event_pages;
mod event_search;
mod executions;
mod grants;
mod holdings;
mod imports;
mod inspect;
mod keychain;
mod leases;
mod lock;
mod logs;
mod migrate;
mod objects;
mod open;
mod options;
mod outbox;
mod outbox_writer;
mod private;
mod readers;
mod result_store;
mod retention;
mod row_log;
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
mod wal_prealloc;
mod writer;

pub use backup::backup;
pub use error::OpenError;
pub use inspect::{Schema, schema};
pub use options::{DatabaseLocation, Options, Synchronous};
pub use store::{FileStats, SqliteStore};
