//! What a case runs on.

use std::any::Any;
use std::sync::Arc;

use crate::{OutboxOptions, Store};

/// The store a case runs on, with what has to outlive it.
pub struct Subject {
    store: Arc<dyn Store>,
    _kept: Box<dyn Any + Send>,
}

impl Subject {
    /// A store that needs nothing else.
    pub fn new(store: impl Store + 'static) -> Self {
        Self::keeping(store, ())
    }

    /// A store and what it lives in, a temporary directory say.
    pub fn keeping(store: impl Store + 'static, kept: impl Any + Send) -> Self {
        Self { store: Arc::new(store), _kept: Box::new(kept) }
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}

/// The outbox as the cases expect it: on, and with a claim that lasts longer than any of them.
pub fn outbox_on() -> OutboxOptions {
    OutboxOptions { is_on: true, ..OutboxOptions::default() }
}
