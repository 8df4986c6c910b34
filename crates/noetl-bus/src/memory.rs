//! A stream in one process, which can be made to fail.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{BusError, EventStream, Message, PublishError, Stored, StreamSettings};

/// A message a stream has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where it was published.
    pub subject: String,
    /// Its id.
    pub id: String,
    /// What it says.
    pub payload: Vec<u8>,
}

/// A stream in memory. Ids are known for ever, and nothing gets too old: made for tests.
#[derive(Debug)]
pub struct MemoryStream {
    state: Mutex<State>,
    connected: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    settings: Option<StreamSettings>,
    kept: Vec<Kept>,
    ids: HashSet<String>,
    payload_max: Option<usize>,
    refused: HashSet<String>,
    /// After so many answers the bus goes away, with what is kept and not answered.
    answers_left: Option<usize>,
}

impl Default for MemoryStream {
    fn default() -> Self {
        Self { state: Mutex::default(), connected: watch::Sender::new(true) }
    }
}

impl MemoryStream {
    /// A bus that is reached and has no stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most bytes a payload may have.
    #[must_use]
    pub fn with_payload_max(self, bytes: usize) -> Self {
        self.state().payload_max = Some(bytes);
        self
    }

    /// Every message there is, oldest first.
    pub fn kept(&self) -> Vec<Kept> {
        self.state().kept.clone()
    }

    /// What the stream was made with.
    pub fn settings(&self) -> Option<StreamSettings> {
        self.state().settings.clone()
    }

    /// Lets the bus be away, or back.
    pub fn set_connected(&self, is_connected: bool) {
        if is_connected {
            self.state().answers_left = None;
        }
        self.connected.send_replace(is_connected);
    }

    /// Lets the bus go away after this many more answers. The messages of the batch that breaks are
    /// kept all the same: what is lost are the answers.
    pub fn leave_after(&self, answers: usize) {
        self.state().answers_left = Some(answers);
    }

    /// Refuses messages with this id from here on.
    pub fn refuse(&self, id: &str) {
        self.state().refused.insert(id.to_owned());
    }

    /// Deletes the stream with everything in it.
    pub fn delete(&self) {
        let mut state = self.state();
        state.settings = None;
        state.kept.clear();
        state.ids.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, message: Message) -> Result<Stored, PublishError> {
        let bytes = message.payload.len();
        if self.payload_max.is_some_and(|most| bytes > most) {
            return Err(PublishError::TooLarge { bytes });
        }
        let is_taken = |settings: &StreamSettings| {
            settings.subjects.iter().any(|pattern| matches(pattern, &message.subject))
        };
        if !self.settings.as_ref().is_some_and(is_taken) {
            return Err(PublishError::NoStream);
        }
        if self.refused.contains(&message.id) {
            return Err(PublishError::Refused("a message with this id".to_owned()));
        }
        if !self.ids.insert(message.id.clone()) {
            return Ok(Stored::Known);
        }
        let Message { subject, id, payload } = message;
        self.kept.push(Kept { subject, id, payload });
        Ok(Stored::New)
    }
}

/// Whether a subject is one of a pattern's: equal, or below what stands before its `.>`.
fn matches(pattern: &str, subject: &str) -> bool {
    match pattern.strip_suffix('>') {
        Some(prefix) => subject.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()),
        None => pattern == subject,
    }
}

#[async_trait]
impl EventStream for MemoryStream {
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError> {
        if !self.is_connected() {
            return Err(BusError::Away("it was told to be away".to_owned()));
        }
        self.state().settings.get_or_insert_with(|| settings.clone());
        Ok(())
    }

    async fn publish(&self, batch: Vec<Message>) -> Vec<Result<Stored, PublishError>> {
        let away = || Err(PublishError::Away("it was told to be away".to_owned()));
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
        // The sender is this bus, which outlives the call.
        let _ = connected.wait_for(|is_connected| *is_connected).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::conformance::{Inspect, Subject};

    #[async_trait]
    impl Inspect for MemoryStream {
        async fn kept(&self) -> Vec<Kept> {
            Self::kept(self)
        }

        async fn delete(&self) {
            Self::delete(self);
        }
    }

    crate::event_stream_suite!(memory, async || {
        let stream = Arc::new(MemoryStream::new().with_payload_max(1 << 20));
        Subject::new(stream.clone(), stream)
    });

    #[tokio::test]
    async fn what_is_kept_without_an_answer_is_known_afterwards() {
        let stream = MemoryStream::new();
        stream.ensure(&crate::conformance::settings()).await.expect("a stream");
        stream.leave_after(1);
        let batch = crate::conformance::messages(["a", "b"]);
        let answers = stream.publish(batch.clone()).await;
        assert!(matches!(&answers[..], [Ok(Stored::New), Err(PublishError::Away(_))]));
        assert!(!stream.is_connected());
        assert!(matches!(stream.publish(batch.clone()).await[0], Err(PublishError::Away(_))));
        stream.set_connected(true);
        stream.connected().await;
        assert_eq!(stream.publish(batch).await, [Ok(Stored::Known), Ok(Stored::Known)]);
        assert_eq!(MemoryStream::kept(&stream).len(), 2);
    }
}
