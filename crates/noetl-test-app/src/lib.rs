//! A running control plane for tests, with parts that a test can steer.
//!
//! `TestApp` serves the API with a local worker on a free port. [`FaultyStore`] fails or blocks calls,
//! [`SimClock`] moves only when a test advances it, and [`published_worker`] repeats the requests of
//! the worker released as 5.52. Each part closes what it opened, so a test leaves neither a task nor a
//! socket behind.
//!
//! The feature `server` (default) adds the parts that need an HTTP server or a database. Tests of the
//! control plane and the simulation do without them.

#[cfg(feature = "server")]
mod app;
mod backend;
mod clock;
mod faulty_store;
pub mod published_worker;
mod tools;

#[cfg(feature = "server")]
pub use app::{TestApp, TestAppBuilder, worker};
#[cfg(feature = "server")]
pub use backend::migrated_database;
pub use clock::SimClock;
pub use faulty_store::{CallInterceptor, CommitFault, FaultyStore};
pub use tools::{Echo, Noop};
