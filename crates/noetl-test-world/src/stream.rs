//! The bus of a world: what was published on it, in the order in which it first was.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_bus::{
    BusError, EventStream, MemoryStream, Message, PublishError, Stored, StreamSettings,
};

use super::scene::lock;

/// A bus that remembers what it ever took, also when everything on it was lost since.
pub(crate) struct Stream {
    inner: Arc<MemoryStream>,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    known: BTreeSet<String>,
    /// Their ids in the order in which they first came.
    order: Vec<String>,
}

impl Stream {
    pub(crate) fn new(inner: Arc<MemoryStream>) -> Self {
        Self { inner, taken: Mutex::default() }
    }

    /// How many messages it ever took, repeats not counted.
    pub(crate) fn count(&self) -> u64 {
        u64::try_from(lock(&self.taken).known.len()).unwrap_or_default()
    }

    /// All ids it ever took, each once, in the order in which they first came.
    pub(crate) fn order(&self) -> Vec<String> {
        lock(&self.taken).order.clone()
    }
}

#[async_trait]
impl EventStream for Stream {
    async fn ensure(&self, settings: &StreamSettings) -> Result<(), BusError> {
        self.inner.ensure(settings).await
    }

    async fn publish(&self, batch: Vec<Message>) -> Vec<Result<Stored, PublishError>> {
        let ids: Vec<String> = batch.iter().map(|message| message.id.clone()).collect();
        let answers = self.inner.publish(batch).await;
        let mut taken = lock(&self.taken);
        for (id, answer) in ids.into_iter().zip(&answers) {
            if answer.is_ok() && taken.known.insert(id.clone()) {
                taken.order.push(id);
            }
        }
        answers
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
