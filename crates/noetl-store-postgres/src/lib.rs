//! The shared store: a Postgres database that several processes use at once.
//!
//! A batch of the journal is one statement, whatever its size: a function of the database locks the
//! executions in id order, keeps what fits the log and answers for the rest. Reads go beside it over
//! a pool. No session state is used, so a proxy that pools by transaction may stand between. The
//! schema is in `migrations/`, queries are in `queries/`; nothing outside this crate knows a table.

mod arrays;
mod blobs;
mod catalog;
mod column;
mod commands;
mod console;
mod credentials;
mod cursors;
mod due;
mod error;
mod event_log;
mod executions;
mod grants;
mod hold;
mod holdings;
mod imports;
mod inspect;
mod keychain;
mod leases;
mod line;
mod listen;
mod logs;
mod migrate;
mod objects;
mod options;
mod outbox;
mod outgoing;
mod partitions;
mod plugins;
mod result_store;
mod retention;
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
