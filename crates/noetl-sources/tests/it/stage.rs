//! A control plane, a NATS server with a stream, and what is needed to see what becomes of messages.

use std::ops::Deref;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use noetl_sources::SubscriptionRuntime;
use noetl_test_app::TestApp;
use noetl_test_services::nats::TestNats;

use crate::hall::Hall;
pub(crate) use crate::hall::{options, until};

/// Where messages are published.
pub(crate) const SUBJECT: &str = "orders.new";

pub(crate) struct Stage {
    hall: Hall,
    pub(crate) nats: TestNats,
}

impl Deref for Stage {
    type Target = Hall;

    fn deref(&self) -> &Hall {
        &self.hall
    }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(TestNats::start(), TestApp::start(4).await).await
    }

    pub(crate) async fn with(nats: TestNats, app: TestApp) -> Self {
        Self { hall: Hall::new(app).await, nats }
    }

    /// With the stream `ORDERS`.
    pub(crate) async fn with_stream() -> Self {
        let stage = Self::new().await;
        stage.make_stream().await;
        stage
    }

    pub(crate) async fn make_stream(&self) {
        self.nats.create_stream("ORDERS", "orders.>").await;
    }

    /// Registers a document with these further keys of its `spec`.
    pub(crate) async fn document(&self, path: &str, more: &str) {
        self.whole_document(path, &format!("  stream: ORDERS\n{more}")).await;
    }

    pub(crate) async fn whole_document(&self, path: &str, keys: &str) {
        let keys = format!("  url: {}\n{keys}", self.nats.url());
        self.document_of("nats", path, &keys).await;
    }

    pub(crate) async fn publish(&self, count: usize) {
        publish(&self.nats.context().await, 0..count).await;
    }

    /// Waits until nothing waits at the source.
    pub(crate) async fn acknowledged(&self, consumer: &str) {
        until("every message to be acknowledged", async || self.waiting(consumer).await == 0).await;
    }

    /// How much waits at a consumer, what was handed out included.
    pub(crate) async fn waiting(&self, consumer: &str) -> u64 {
        self.nats.unacked("ORDERS", consumer).await
    }

    pub(crate) async fn close(self, runtimes: impl IntoIterator<Item = SubscriptionRuntime>) {
        self.hall.close(runtimes).await;
    }
}

/// The id of a message by its number.
pub(crate) fn message_id(number: usize) -> String {
    format!("m{number:06}")
}

/// Publishes messages `{"order": n}` with ids, and waits until the stream has them.
pub(crate) async fn publish(context: &Context, numbers: std::ops::Range<usize>) {
    let mut acks = Vec::new();
    for number in numbers {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", message_id(number).as_str());
        let body = format!("{{\"order\": {number}}}");
        let ack = context.publish_with_headers(SUBJECT, headers, body.into()).await.unwrap();
        acks.push(ack);
        if acks.len() >= 500 {
            for ack in acks.drain(..) {
                ack.await.unwrap();
            }
        }
    }
    for ack in acks {
        ack.await.unwrap();
    }
}

/// The consumer of a subscription at `sub/orders` that names none.
pub(crate) const CONSUMER: &str = "noetl_sub_orders";
