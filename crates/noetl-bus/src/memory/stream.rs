//! An in-memory stream and its consumers.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::subject::is_of;
use crate::{
    Consumer, ConsumerState, PublishAck, StoredMessage, StreamMessage, StreamSettings, StreamState,
};

/// A stream and its messages.
#[derive(Debug)]
pub(super) struct StreamBuffer {
    pub(super) settings: StreamSettings,
    messages: Vec<StoredMessage>,
    removed: BTreeSet<usize>,
    ids: HashSet<String>,
    made: i128,
    readers: BTreeMap<String, MemoryConsumer>,
}

#[derive(Debug)]
struct MemoryConsumer {
    filter: String,
    /// Index of the next message to deliver.
    next: usize,
    /// Indexes of messages delivered and not acked.
    in_flight: BTreeSet<usize>,
    /// Indexes of nacked messages, to be redelivered before new ones.
    redeliver: BTreeSet<usize>,
}

impl StreamBuffer {
    pub(super) fn new(settings: &StreamSettings, made: i128) -> Self {
        Self {
            settings: settings.clone(),
            messages: Vec::new(),
            removed: BTreeSet::new(),
            ids: HashSet::new(),
            made,
            readers: BTreeMap::new(),
        }
    }

    /// Returns every stored message, oldest first.
    pub(super) fn messages(&self) -> impl Iterator<Item = &StoredMessage> {
        let placed = self.messages.iter().enumerate();
        placed.filter(|(index, _)| !self.removed.contains(index)).map(|(_, message)| message)
    }

    /// Deletes matching messages up to and including sequence number `until`, which counts from 1.
    pub(super) fn discard(&mut self, filter: &str, until: u64) {
        let count = usize::try_from(until).unwrap_or(usize::MAX);
        for (index, message) in self.messages.iter().enumerate().take(count) {
            if is_of(&message.subject, filter) {
                self.removed.insert(index);
                for reader in self.readers.values_mut() {
                    reader.in_flight.remove(&index);
                    reader.redeliver.remove(&index);
                }
            }
        }
    }

    pub(super) fn takes(&self, subject: &str) -> bool {
        self.settings.subjects.iter().any(|pattern| is_of(subject, pattern))
    }

    pub(super) fn ensure(&mut self, consumer: &Consumer) {
        self.readers.entry(consumer.name.clone()).or_insert_with(|| MemoryConsumer {
            filter: consumer.filter.clone(),
            next: 0,
            in_flight: BTreeSet::new(),
            redeliver: BTreeSet::new(),
        });
    }

    /// Changes a consumer's filter. Returns `false` if there is no consumer of this name.
    pub(super) fn redirect(&mut self, consumer: &Consumer) -> bool {
        let reader = self.readers.get_mut(&consumer.name);
        reader.map(|reader| consumer.filter.clone_into(&mut reader.filter)).is_some()
    }

    pub(super) fn keep(&mut self, message: StreamMessage) -> PublishAck {
        if !self.ids.insert(message.id.clone()) {
            return PublishAck::Known;
        }
        let StreamMessage { subject, id, payload } = message;
        self.messages.push(StoredMessage { subject, id, payload });
        PublishAck::New
    }

    pub(super) fn has_reader(&self, consumer: &str) -> bool {
        self.readers.contains_key(consumer)
    }

    /// Delivers a consumer's next message: nacked ones first.
    pub(super) fn give(&mut self, consumer: &str) -> Option<(usize, StoredMessage)> {
        let reader = self.readers.get_mut(consumer)?;
        if let Some(index) = reader.redeliver.pop_first() {
            reader.in_flight.insert(index);
            return Some((index, self.messages[index].clone()));
        }
        while let Some(message) = self.messages.get(reader.next) {
            let index = reader.next;
            reader.next += 1;
            if is_of(&message.subject, &reader.filter) && !self.removed.contains(&index) {
                reader.in_flight.insert(index);
                return Some((index, message.clone()));
            }
        }
        None
    }

    /// Acks a delivered message if `is_done`, else queues it for redelivery.
    pub(super) fn answer(&mut self, consumer: &str, index: usize, is_done: bool) {
        let Some(reader) = self.readers.get_mut(consumer) else { return };
        if reader.in_flight.remove(&index) && !is_done {
            reader.redeliver.insert(index);
        }
    }

    pub(super) fn state(&self) -> StreamState {
        let state = |(name, reader): (&String, &MemoryConsumer)| {
            let later = self.messages.iter().enumerate().skip(reader.next);
            let later = later.filter(|(index, _)| !self.removed.contains(index));
            let pending =
                later.filter(|(_, message)| is_of(&message.subject, &reader.filter)).count();
            ConsumerState {
                name: name.clone(),
                filters: vec![reader.filter.clone()],
                pending: pending as u64,
                unacknowledged: (reader.in_flight.len() + reader.redeliver.len()) as u64,
            }
        };
        let consumers = self.readers.iter().map(state).collect();
        StreamState { made: self.made, last: self.messages.len() as u64, consumers }
    }
}
