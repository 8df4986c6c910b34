//! What a runtime remembers of messages between two deliveries of one.
//!
//! It is bounded, and gone with the process: what must not be forgotten is in the store.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_model::Value;

use crate::source::Message;

/// How many messages are remembered.
const KEPT_MAX: usize = 10_000;

/// What is remembered of messages, by their place at the source.
pub(crate) struct Memory {
    kept: Mutex<LruCache<String, Known>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Known {
    /// It is dealt with, and the source did not hear of it.
    is_done: bool,
    /// How often it failed.
    failures: u64,
    /// How often it did not get through while others did.
    held_up: u64,
}

impl Default for Memory {
    fn default() -> Self {
        let most = NonZeroUsize::new(KEPT_MAX).expect("more than none");
        Self { kept: Mutex::new(LruCache::new(most)) }
    }
}

impl Memory {
    /// By what a message is remembered: its id, and its place where there is one, because publishers may
    /// give several messages one id.
    pub(crate) fn place(message: &Message) -> String {
        match message.metadata.get("stream_sequence") {
            Some(Value::Number(number)) => format!("{number} {}", message.id),
            _ => message.id.clone(),
        }
    }

    pub(crate) fn is_done(&self, place: &str) -> bool {
        self.lock().get(place).is_some_and(|known| known.is_done)
    }

    pub(crate) fn done(&self, place: &str) {
        let known = Known { is_done: true, ..Known::default() };
        self.lock().put(place.to_owned(), known);
    }

    /// Notes a failure, and says how many there were.
    pub(crate) fn failed(&self, place: &str) -> u64 {
        let mut kept = self.lock();
        let known = kept.get_or_insert_mut(place.to_owned(), Known::default);
        known.failures += 1;
        known.failures
    }

    /// Notes that it did not get through while others did, and says how often.
    pub(crate) fn held_up(&self, place: &str) -> u64 {
        let mut kept = self.lock();
        let known = kept.get_or_insert_mut(place.to_owned(), Known::default);
        known.held_up += 1;
        known.held_up
    }

    pub(crate) fn forget(&self, place: &str) {
        self.lock().pop(place);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<String, Known>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
