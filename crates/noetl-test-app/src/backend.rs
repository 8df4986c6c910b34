//! Store of a test app: in memory, or the one that `NOETL_TEST_STORE` names.
//!
//! Responses must not depend on the store, so the tests of the API run on each of them:
//! `NOETL_TEST_STORE=sqlite` and `NOETL_TEST_STORE=postgres`.

#[cfg(feature = "server")]
mod open;

use std::any::Any;
use std::sync::Arc;

use noetl_store::Store;

#[cfg(feature = "server")]
pub use open::migrated_database;

/// A store and the resource that has to outlive it, such as its directory.
pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) resource: Option<Box<dyn Any + Send + Sync>>,
}
