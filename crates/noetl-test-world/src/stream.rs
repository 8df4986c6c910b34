//! The bus of a world, and its comparison with the event logs.
//!
//! Publishing is at least once: an event may be published repeatedly, under one message ID, and the
//! stream stores it once. The first publications of an execution's events follow its log. A stream that
//! the weather deletes may get repeats of events that only the deleted one stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_bus::{
    BusError, EventStream, MemoryStream, PublishAck, PublishError, StreamMessage, StreamSettings,
};
use noetl_model::ExecutionId;

use super::lock::lock;
use super::planted::{BatchDefect, StreamDefect};

/// A bus that remembers which messages the streams had that were deleted from it.
pub(crate) struct Stream {
    inner: Arc<MemoryStream>,
    /// Message IDs of deleted streams, oldest stream first.
    deleted: Mutex<Vec<Vec<String>>>,
    defect: Option<Mutex<StreamDefect>>,
}

impl Stream {
    pub(crate) fn new(inner: Arc<MemoryStream>, defect: Option<StreamDefect>) -> Self {
        Self { inner, deleted: Mutex::default(), defect: defect.map(Mutex::new) }
    }

    /// Deletes everything on the bus.
    pub(crate) fn delete(&self) {
        lock(&self.deleted).push(self.stored());
        self.inner.delete();
    }

    /// Returns the message IDs of every stream there ever was, oldest stream first, in stored order.
    pub(crate) fn streams(&self) -> Vec<Vec<String>> {
        let mut streams = lock(&self.deleted).clone();
        streams.push(self.stored());
        streams
    }

    fn stored(&self) -> Vec<String> {
        self.inner.kept().into_iter().map(|message| message.id).collect()
    }
}

#[async_trait]
impl EventStream for Stream {
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError> {
        self.inner.ensure(settings).await
    }

    async fn publish(
        &self,
        mut batch: Vec<StreamMessage>,
    ) -> Vec<Result<PublishAck, PublishError>> {
        let is_connected = self.inner.is_connected();
        let defect = self.defect.as_ref().filter(|_| is_connected);
        match defect.and_then(|defect| lock(defect).batch(&batch)) {
            None => self.inner.publish(batch).await,
            Some(BatchDefect::Drop(index)) => {
                batch.remove(index);
                let mut answers = self.inner.publish(batch).await;
                answers.insert(index, Ok(PublishAck::New));
                answers
            }
            Some(BatchDefect::Double(index)) => {
                let mut copy = batch[index].clone();
                copy.id.push_str(":2");
                batch.push(copy);
                let mut answers = self.inner.publish(batch).await;
                answers.pop();
                answers
            }
            Some(BatchDefect::Swap(one, other)) => {
                batch.swap(one, other);
                let mut answers = self.inner.publish(batch).await;
                answers.swap(one, other);
                answers
            }
            Some(BatchDefect::Wipe) => {
                let answers = self.inner.publish(batch).await;
                self.inner.delete();
                answers
            }
        }
    }

    fn payload_max(&self) -> Option<usize> {
        self.inner.payload_max()
    }

    fn is_connected(&self) -> bool {
        self.inner.is_connected()
    }

    async fn connected(&self) {
        self.inner.connected().await;
    }
}

/// Message IDs of the events of each execution, in the order of its log.
pub(crate) type Logs = BTreeMap<ExecutionId, Vec<String>>;

/// Difference between the streams and the event logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Events at the end of logs are not published; they may still be.
    Missing(String),
    /// The streams are wrong, and later messages can't repair them.
    Wrong(String),
}

/// Returns how streams, oldest first, differ from the event logs, or `None` if they hold each event
/// under its message ID, once per stream, and first in the order of its log.
pub(crate) fn difference(streams: &[Vec<String>], logs: &Logs) -> Option<Difference> {
    let mut expected: BTreeMap<&str, (ExecutionId, usize)> = BTreeMap::new();
    for (execution, ids) in logs {
        expected.extend(ids.iter().zip(1..).map(|(id, seq)| (id.as_str(), (*execution, seq))));
    }
    let mut published: BTreeSet<&str> = BTreeSet::new();
    let mut last: BTreeMap<ExecutionId, usize> = BTreeMap::new();
    for stream in streams {
        let mut stored = BTreeSet::new();
        for id in stream {
            let wrong = |problem: String| Some(Difference::Wrong(problem));
            let Some((execution, seq)) = expected.get(id.as_str()).copied() else {
                return wrong(format!("message {id} is of no event in a log"));
            };
            if !stored.insert(id) {
                return wrong(format!("event {seq} of {execution} is on the stream twice"));
            }
            if !published.insert(id) {
                continue;
            }
            let before = last.insert(execution, seq).unwrap_or_default();
            if seq != before + 1 {
                return wrong(format!("event {seq} was published after event {before}"));
            }
        }
    }
    let (count, all) = (published.len(), expected.len());
    (count < all).then(|| Difference::Missing(format!("{count} of {all} events are on the stream")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs() -> Logs {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        BTreeMap::from([
            (ExecutionId::new(1), ids(&["10", "12:1", "13"])),
            (ExecutionId::new(2), ids(&["11", "14"])),
        ])
    }

    fn difference_of(streams: &[&[&str]]) -> Option<Difference> {
        let owned = |stream: &&[&str]| stream.iter().map(|id| (*id).to_owned()).collect();
        difference(&streams.iter().map(owned).collect::<Vec<_>>(), &logs())
    }

    fn is_wrong(streams: &[&[&str]]) -> bool {
        matches!(difference_of(streams), Some(Difference::Wrong(_)))
    }

    #[test]
    fn only_events_of_one_execution_must_be_published_in_order() {
        assert_eq!(difference_of(&[&["10", "12:1", "11", "13", "14"]]), None);
        assert_eq!(difference_of(&[&["11", "14", "10", "12:1", "13"]]), None);
        assert!(is_wrong(&[&["12:1", "10", "13", "11", "14"]]));
    }

    #[test]
    fn a_recreated_stream_may_repeat_events_of_the_deleted_one() {
        assert_eq!(difference_of(&[&["10", "12:1"], &["10", "13", "11", "14"]]), None);
        assert!(is_wrong(&[&["10", "12:1", "12:1"]]), "one stream may not");
    }

    #[test]
    fn missing_events_are_reported() {
        assert!(matches!(difference_of(&[&["10", "12:1"]]), Some(Difference::Missing(_))));
        assert!(matches!(difference_of(&[]), Some(Difference::Missing(_))));
        assert!(is_wrong(&[&["10", "13"]]), "a gap is never filled");
    }

    #[test]
    fn unknown_events_and_message_ids_are_reported() {
        for id in ["15", "x", "", "10:1", "12", "12:2"] {
            assert!(is_wrong(&[&[id]]), "{id}");
        }
    }
}
