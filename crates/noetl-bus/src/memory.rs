//! In-memory bus with fault injection.

mod reading;
mod stream;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use self::stream::StreamBuffer;
use crate::{
    BusError, CommandBus, Consumer, EventStream, PublishAck, PublishError, StreamMessage,
    StreamSettings, StreamState,
};

/// A message stored in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Subject the message was published on.
    pub subject: String,
    pub id: String,
    pub payload: Vec<u8>,
}

/// Streams in memory, for tests. Deduplication IDs and messages never expire.
#[derive(Debug)]
pub struct MemoryStream {
    state: Mutex<BusState>,
    connected: watch::Sender<bool>,
    published: watch::Sender<u64>,
    /// Incremented when waiting pulls must check again although nothing was published: on a nack
    /// and when the streams are deleted.
    given_back: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct BusState {
    streams: Vec<StreamBuffer>,
    /// Number of streams created so far.
    made: i128,
    payload_max: Option<usize>,
    refused: HashSet<String>,
    /// Number of outcomes still returned before the connection drops. Later messages of that batch
    /// are stored, but their outcomes are lost.
    answers_left: Option<usize>,
}

impl Default for MemoryStream {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            connected: watch::Sender::new(true),
            published: watch::Sender::new(0),
            given_back: watch::Sender::new(0),
        }
    }
}

impl MemoryStream {
    /// Creates a connected bus without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum payload size in bytes.
    #[must_use]
    pub fn with_payload_max(self, bytes: usize) -> Self {
        self.state().payload_max = Some(bytes);
        self
    }

    /// Returns every stored message, oldest first within its stream.
    pub fn kept(&self) -> Vec<StoredMessage> {
        self.state().streams.iter().flat_map(StreamBuffer::messages).cloned().collect()
    }

    /// Returns the configuration the first stream was created with.
    pub fn settings(&self) -> Option<StreamSettings> {
        self.state().streams.first().map(|stream| stream.settings.clone())
    }

    /// Connects or disconnects the bus. Connecting also clears [`leave_after`](Self::leave_after).
    pub fn set_connected(&self, is_connected: bool) {
        if is_connected {
            self.state().answers_left = None;
        }
        self.connected.send_replace(is_connected);
    }

    /// Disconnects the bus after this many more outcomes. The remaining messages of the batch that
    /// reaches the limit are stored, but their outcomes are lost.
    pub fn leave_after(&self, answers: usize) {
        self.state().answers_left = Some(answers);
    }

    /// Rejects messages with this ID from now on.
    pub fn refuse(&self, id: &str) {
        self.state().refused.insert(id.to_owned());
    }

    /// Deletes all streams and their messages.
    pub fn delete(&self) {
        self.state().streams.clear();
        self.given_back.send_modify(|count| *count += 1);
    }

    /// Delivers a consumer's next message, to be acked or nacked with [`MemoryStream::answer`].
    pub fn give(&self, consumer: &str) -> Option<(usize, StoredMessage)> {
        self.state().streams.iter_mut().find_map(|stream| stream.give(consumer))
    }

    /// Acks a delivered message if `is_done`, else nacks it so that it is redelivered.
    pub fn answer(&self, consumer: &str, index: usize, is_done: bool) {
        for stream in &mut self.state().streams {
            stream.answer(consumer, index, is_done);
        }
        if !is_done {
            self.given_back.send_modify(|count| *count += 1);
        }
    }

    /// Returns a counter that changes whenever a batch is published.
    pub fn published(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, BusState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BusState {
    fn keep(&mut self, message: StreamMessage) -> Result<PublishAck, PublishError> {
        let bytes = message.payload.len();
        if self.payload_max.is_some_and(|most| bytes > most) {
            return Err(PublishError::TooLarge { bytes });
        }
        let taking = self.streams.iter_mut().find(|stream| stream.takes(&message.subject));
        let Some(stream) = taking else { return Err(PublishError::NoStream) };
        if self.refused.contains(&message.id) {
            return Err(PublishError::Refused("a message with this id".to_owned()));
        }
        Ok(stream.keep(message))
    }
}

const AWAY: &str = "it was told to be away";

#[async_trait]
impl EventStream for MemoryStream {
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Away(AWAY.to_owned()));
        }
        let mut state = self.state();
        let known = state.streams.iter().position(|stream| stream.settings.name == settings.name);
        let index = known.unwrap_or_else(|| {
            let made = state.made;
            state.made += 1;
            state.streams.push(StreamBuffer::new(settings, made));
            state.streams.len() - 1
        });
        for consumer in &settings.consumers {
            state.streams[index].ensure(consumer);
        }
        Ok(())
    }

    async fn publish(&self, batch: Vec<StreamMessage>) -> Vec<Result<PublishAck, PublishError>> {
        let away = || Err(PublishError::Away(AWAY.to_owned()));
        if !self.is_connected() {
            return batch.iter().map(|_| away()).collect();
        }
        let mut state = self.state();
        let mut answers = Vec::with_capacity(batch.len());
        for message in batch {
            let answer = state.keep(message);
            answers.push(match state.answers_left.as_mut() {
                Some(0) => away(),
                Some(left) => {
                    *left -= 1;
                    answer
                }
                None => answer,
            });
        }
        if state.answers_left == Some(0) {
            self.connected.send_replace(false);
        }
        drop(state);
        self.published.send_modify(|count| *count += 1);
        answers
    }

    fn payload_max(&self) -> Option<usize> {
        self.state().payload_max
    }

    fn is_connected(&self) -> bool {
        *self.connected.borrow()
    }

    async fn connected(&self) {
        let mut connected = self.connected.subscribe();
        // `self` owns the sender and outlives the call, so the wait cannot fail.
        let _ = connected.wait_for(|is_connected| *is_connected).await;
    }
}

#[async_trait]
impl CommandBus for MemoryStream {
    async fn state(&self, stream: &str) -> Result<Option<StreamState>, BusError> {
        if !self.is_connected() {
            return Err(BusError::Away(AWAY.to_owned()));
        }
        let state = Self::state(self);
        let stream_state = state.streams.iter().find(|known| known.settings.name == stream);
        Ok(stream_state.map(StreamBuffer::state))
    }

    async fn discard(&self, stream: &str, filter: &str, until: u64) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Away(AWAY.to_owned()));
        }
        let mut state = Self::state(self);
        let stream_state = state.streams.iter_mut().find(|known| known.settings.name == stream);
        stream_state.into_iter().for_each(|stream| stream.discard(filter, until));
        Ok(())
    }

    async fn redirect(&self, stream: &str, consumer: &Consumer) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Away(AWAY.to_owned()));
        }
        let mut state = Self::state(self);
        let stream_state = state.streams.iter_mut().find(|known| known.settings.name == stream);
        match stream_state.is_some_and(|stream| stream.redirect(consumer)) {
            true => Ok(()),
            false => Err(BusError::Refused("no such reader".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conformance::{Answer, Inspect, Subject};

    #[async_trait]
    impl Inspect for MemoryStream {
        async fn kept(&self) -> Vec<StoredMessage> {
            Self::kept(self)
        }

        async fn delete(&self) {
            Self::delete(self);
        }

        async fn give(&self, consumer: &str, answer: Answer) -> Option<StoredMessage> {
            let (index, message) = Self::give(self, consumer)?;
            match answer {
                Answer::Done => self.answer(consumer, index, true),
                Answer::Again => self.answer(consumer, index, false),
                Answer::None => {}
            }
            Some(message)
        }
    }

    crate::event_stream_suite!(memory, async || {
        let stream = Arc::new(MemoryStream::new().with_payload_max(1 << 20));
        Subject::new(stream.clone(), stream.clone(), stream)
    });

    #[tokio::test]
    async fn a_message_stored_without_an_ack_is_deduplicated_afterwards() {
        let stream = MemoryStream::new();
        stream.ensure(&crate::conformance::settings()).await.expect("a stream");
        stream.leave_after(1);
        let batch = crate::conformance::messages(["a", "b"]);
        let answers = stream.publish(batch.clone()).await;
        assert!(matches!(&answers[..], [Ok(PublishAck::New), Err(PublishError::Away(_))]));
        assert!(!stream.is_connected());
        assert!(matches!(stream.publish(batch.clone()).await[0], Err(PublishError::Away(_))));
        stream.set_connected(true);
        stream.connected().await;
        assert_eq!(stream.publish(batch).await, [Ok(PublishAck::Known), Ok(PublishAck::Known)]);
        assert_eq!(MemoryStream::kept(&stream).len(), 2);
    }
}
