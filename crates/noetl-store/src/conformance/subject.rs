//! The store that a case runs on.

use std::any::Any;
use std::sync::Arc;

use crate::{OutboxOptions, Store};

/// The store that a case runs on, with a value that must outlive it.
pub struct Subject {
    store: Arc<dyn Store>,
    _kept: Box<dyn Any + Send>,
}

impl Subject {
    /// Wraps a store that needs nothing else.
    pub fn new(store: impl Store + 'static) -> Self {
        Self::keeping(store, ())
    }

    /// Wraps a store and a value that must outlive it, such as a temporary directory.
    pub fn keeping(store: impl Store + 'static, kept: impl Any + Send) -> Self {
        Self { store: Arc::new(store), _kept: Box::new(kept) }
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}

/// Returns the outbox options that the cases expect: enabled, with claims that outlast every case.
pub fn outbox_on() -> OutboxOptions {
    OutboxOptions { is_on: true, ..OutboxOptions::default() }
}
