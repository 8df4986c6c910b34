//! What a runtime remembers of messages between two deliveries of one.
//!
//! It is bounded, and gone with the process: what must not be forgotten is in the store.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::shape::key_of;
use crate::source::Message;
use lru::LruCache;

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
    /// By what a message is remembered: its place at the source where it has one, because publishers may
    /// give several messages one id; with the time it came there, because a stream may be made anew.
    pub(crate) fn place(message: &Message) -> String {
        let told = |name: &str| message.metadata.get(name).filter(|value| !value.is_null());
        match (told("stream"), told("stream_sequence"), told("published_at")) {
            (Some(stream), Some(sequence), Some(at)) => format!("{stream} {sequence} {at}"),
            _ => key_of(&message.id),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(id: &str, metadata: serde_json::Value) -> Message {
        let serde_json::Value::Object(metadata) = metadata else { panic!("a map") };
        Message {
            id: id.to_owned(),
            body: bytes::Bytes::new(),
            headers: Vec::new(),
            attributes: noetl_model::Map::new(),
            metadata,
            ack_id: None,
        }
    }

    #[test]
    fn a_place_is_of_one_message_however_ids_repeat() {
        let at = |sequence: u64, time: &str| {
            let place = json!({"stream": "S", "stream_sequence": sequence, "published_at": time});
            Memory::place(&message("same", place))
        };
        assert_eq!(at(1, "t"), at(1, "t"));
        assert_ne!(at(1, "t"), at(2, "t"));
        assert_ne!(at(1, "t"), at(1, "u"), "the stream was made anew");
        let bare = |id: &str| Memory::place(&message(id, json!({})));
        assert_ne!(bare("a"), bare("b"));
        assert!(bare(&"i".repeat(1_000_000)).len() < 100, "an id may be long");
    }

    #[test]
    fn what_failed_is_counted_until_it_is_forgotten() {
        let memory = Memory::default();
        assert_eq!((memory.failed("a"), memory.failed("a"), memory.failed("b")), (1, 2, 1));
        assert_eq!((memory.held_up("a"), memory.held_up("a")), (1, 2));
        assert!(!memory.is_done("a"));
        memory.forget("a");
        assert_eq!(memory.failed("a"), 1);
        memory.done("a");
        assert!(memory.is_done("a"));
    }
}
