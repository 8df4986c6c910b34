//! A control plane and a NATS server for tests of the runtime.

use std::ops::Deref;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use noetl_sources::SubscriptionRuntime;
use noetl_test_app::TestApp;
use noetl_test_services::nats::TestNats;

use crate::harness::Harness;
pub(crate) use crate::harness::{options, until};

/// Subject of published messages.
pub(crate) const SUBJECT: &str = "orders.new";

pub(crate) struct NatsHarness {
    harness: Harness,
    pub(crate) nats: TestNats,
}

impl Deref for NatsHarness {
    type Target = Harness;

    fn deref(&self) -> &Harness {
        &self.harness
    }
}

impl NatsHarness {
    pub(crate) async fn new() -> Self {
        Self::with(TestNats::start(), TestApp::start(4).await).await
    }

    pub(crate) async fn with(nats: TestNats, app: TestApp) -> Self {
        Self { harness: Harness::new(app).await, nats }
    }

    /// Starts the harness with the stream `ORDERS`.
    pub(crate) async fn with_stream() -> Self {
        let harness = Self::new().await;
        harness.make_stream().await;
        harness
    }

    pub(crate) async fn make_stream(&self) {
        self.nats.create_stream("ORDERS", "orders.>").await;
    }

    /// Registers a document for the stream `ORDERS` with further keys of its `spec`.
    pub(crate) async fn document(&self, path: &str, more: &str) {
        self.register_nats_document(path, &format!("  stream: ORDERS\n{more}")).await;
    }

    pub(crate) async fn register_nats_document(&self, path: &str, keys: &str) {
        let keys = format!("  url: {}\n{keys}", self.nats.url());
        self.register_document("nats", path, &keys).await;
    }

    pub(crate) async fn publish(&self, count: usize) {
        publish(&self.nats.context().await, 0..count).await;
    }

    /// Waits until every message of the consumer is acked.
    pub(crate) async fn wait_until_acked(&self, consumer: &str) {
        until("every message to be acknowledged", async || self.unacked(consumer).await == 0).await;
    }

    /// Returns the number of unacked messages of a consumer, including messages in flight.
    pub(crate) async fn unacked(&self, consumer: &str) -> u64 {
        self.nats.unacked("ORDERS", consumer).await
    }

    pub(crate) async fn close(self, runtimes: impl IntoIterator<Item = SubscriptionRuntime>) {
        self.harness.close(runtimes).await;
    }
}

/// Returns the ID of a message by its number.
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

/// Default consumer of a subscription at `sub/orders`.
pub(crate) const CONSUMER: &str = "noetl_sub_orders";
