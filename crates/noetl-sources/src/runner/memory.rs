//! Cache of message state between redeliveries.
//!
//! Bounded and lost with the process. State that must survive is in the store.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use noetl_playbook::subscription::dedup_key;

use crate::source::Message;

/// Maximum number of cached messages.
const KEPT_MAX: usize = 10_000;

/// State of messages by their position at the source.
pub(crate) struct RecentMessages {
    messages: Mutex<LruCache<String, RememberedMessage>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RememberedMessage {
    /// Whether the message was processed but its ack failed.
    is_done: bool,
    /// Number of failed starts that were the message's fault.
    failures: u64,
    /// Number of times the message failed while others in its batch succeeded.
    held_up: u64,
}

impl Default for RecentMessages {
    fn default() -> Self {
        let most = NonZeroUsize::new(KEPT_MAX).expect("more than none");
        Self { messages: Mutex::new(LruCache::new(most)) }
    }
}

impl RecentMessages {
    /// Returns the cache key of a message: its stream, sequence number, and publication time if
    /// available, else its ID. Publishers may give several messages one ID, and the time
    /// distinguishes a recreated stream.
    pub(crate) fn place(message: &Message) -> String {
        let field = |name: &str| message.metadata.get(name).filter(|value| !value.is_null());
        match (field("stream"), field("stream_sequence"), field("published_at")) {
            (Some(stream), Some(sequence), Some(at)) => format!("{stream} {sequence} {at}"),
            _ => dedup_key(&message.id),
        }
    }

    pub(crate) fn is_done(&self, place: &str) -> bool {
        self.lock().get(place).is_some_and(|known| known.is_done)
    }

    pub(crate) fn done(&self, place: &str) {
        let known = RememberedMessage { is_done: true, ..RememberedMessage::default() };
        self.lock().put(place.to_owned(), known);
    }

    /// Counts a failure and returns the number of failures so far.
    pub(crate) fn failed(&self, place: &str) -> u64 {
        let mut messages = self.lock();
        let known = messages.get_or_insert_mut(place.to_owned(), RememberedMessage::default);
        known.failures += 1;
        known.failures
    }

    /// Counts a failure while others in the batch succeeded, and returns the number so far.
    pub(crate) fn held_up(&self, place: &str) -> u64 {
        let mut messages = self.lock();
        let known = messages.get_or_insert_mut(place.to_owned(), RememberedMessage::default);
        known.held_up += 1;
        known.held_up
    }

    pub(crate) fn forget(&self, place: &str) {
        self.lock().pop(place);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<String, RememberedMessage>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_position_belongs_to_one_message_even_if_ids_repeat() {
        let at = |sequence: u64, time: &str| {
            let place = json!({"stream": "S", "stream_sequence": sequence, "published_at": time});
            RecentMessages::place(&message("same", place))
        };
        assert_eq!(at(1, "t"), at(1, "t"));
        assert_ne!(at(1, "t"), at(2, "t"));
        assert_ne!(at(1, "t"), at(1, "u"), "the stream was made anew");
        let bare = |id: &str| RecentMessages::place(&message(id, json!({})));
        assert_ne!(bare("a"), bare("b"));
        assert!(bare(&"i".repeat(1_000_000)).len() < 100, "an id may be long");
    }

    #[test]
    fn failures_are_counted_until_they_are_cleared() {
        let memory = RecentMessages::default();
        assert_eq!((memory.failed("a"), memory.failed("a"), memory.failed("b")), (1, 2, 1));
        assert_eq!((memory.held_up("a"), memory.held_up("a")), (1, 2));
        assert!(!memory.is_done("a"));
        memory.forget("a");
        assert_eq!(memory.failed("a"), 1);
        memory.done("a");
        assert!(memory.is_done("a"));
    }
}
