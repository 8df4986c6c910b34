//! The sources of NATS by themselves.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull, push};
use noetl_playbook::check_subscription;
use noetl_sources::{Nats, Source, SourceError, SourceFactory};
use serde_json::{Value, json};

use crate::nats_harness::{NatsHarness, publish};

const WAIT: Duration = Duration::from_millis(200);

async fn open(settings: Value) -> Result<Arc<dyn Source>, SourceError> {
    let text = "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: a, path: sub/a}\nspec:\n  \
                source: nats\n  mode: pull\n  dispatch: {playbook: p}\n";
    let subscription = check_subscription(text).subscription.unwrap();
    let Value::Object(settings) = settings else { panic!("a map") };
    Nats.open(&subscription, &settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn acked_messages_are_removed_and_others_are_redelivered() {
    let harness = NatsHarness::with_stream().await;
    let settings = json!({"url": harness.nats.url(), "stream": "ORDERS", "consumer": "c"});
    let source = open(settings.clone()).await.unwrap();
    publish(&harness.nats.context().await, 0..4).await;
    assert_eq!(source.backlog().await, Ok(Some(4)));
    let mut deliveries = source.fetch(10, WAIT).await.unwrap();
    assert_eq!(deliveries.len(), 4);
    assert_eq!(source.backlog().await, Ok(Some(4)), "what is handed out still waits");
    let [first, second, third, fourth] =
        [deliveries.remove(0), deliveries.remove(0), deliveries.remove(0), deliveries.remove(0)];
    first.handle.ack().await.unwrap();
    second.handle.nack(Duration::ZERO).await.unwrap();
    third.handle.term().await.unwrap();
    fourth.handle.extend().await.unwrap();
    let again = source.fetch(10, WAIT).await.unwrap();
    let ids: Vec<&str> = again.iter().map(|delivery| delivery.message.id.as_str()).collect();
    assert_eq!(ids, [second.message.id.as_str()]);
    assert_eq!(again[0].message.metadata["delivered"], 2);
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0);
    source.close().await;
    // The consumer stays, and so does what was not acknowledged.
    let source = open(settings).await.unwrap();
    assert_eq!(source.backlog().await, Ok(Some(2)));
    harness.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_consumer_is_used_unchanged_if_suitable() {
    let harness = NatsHarness::with_stream().await;
    let stream = harness.nats.context().await.get_stream("ORDERS").await.unwrap();
    let config = pull::Config {
        durable_name: Some("slow".to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(77),
        ..pull::Config::default()
    };
    stream.create_consumer(config.clone()).await.unwrap();
    let none = pull::Config {
        durable_name: Some("none".to_owned()),
        ack_policy: AckPolicy::None,
        ..config
    };
    stream.create_consumer(none).await.unwrap();
    let pushed = push::Config {
        durable_name: Some("pushed".to_owned()),
        deliver_subject: "somewhere".to_owned(),
        ..push::Config::default()
    };
    stream.create_consumer(pushed).await.unwrap();
    let with = |consumer: &str| json!({"url": harness.nats.url(), "stream": "ORDERS", "consumer": consumer});
    assert_eq!(open(with("slow")).await.unwrap().ack_wait(), Duration::from_secs(77));
    for (consumer, part) in [("none", "explicit"), ("pushed", "pushes"), ("a.b", "cannot name")] {
        let error = open(with(consumer)).await.err().unwrap();
        assert!(matches!(&error, SourceError::Settings(text) if text.contains(part)), "{error}");
    }
    harness.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_filters_fetched_messages() {
    let harness = NatsHarness::with_stream().await;
    let context = harness.nats.context().await;
    for subject in ["orders.a", "orders.b", "orders.a"] {
        context.publish(subject, "1".into()).await.unwrap().await.unwrap();
    }
    let settings = json!({"url": harness.nats.url(), "stream": "ORDERS", "topic": "orders.a"});
    let source = open(settings).await.unwrap();
    let deliveries = source.fetch(10, WAIT).await.unwrap();
    let ids: Vec<&str> = deliveries.iter().map(|delivery| delivery.message.id.as_str()).collect();
    assert_eq!(ids, ["ORDERS:1", "ORDERS:3"], "without an id of its own its place is one");
    harness.close([]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_opening_nats_name_the_cause() {
    let harness = NatsHarness::new().await;
    let url = harness.nats.url();
    for (settings, part, is_final) in [
        (json!({"stream": "ORDERS"}), "needs `url`", true),
        (json!({"url": url}), "needs `stream`", true),
        (json!({"url": url, "stream": 7}), "`stream` must be a text", true),
        (json!({"url": "http://x", "stream": "A"}), "", true),
        (json!({"url": url, "stream": "NONE"}), "NONE", false),
        (json!({"url": "nats://127.0.0.1:1", "stream": "A"}), "not reached", false),
    ] {
        let error = open(settings.clone()).await.err().unwrap();
        assert_eq!(matches!(error, SourceError::Settings(_)), is_final, "{settings}: {error}");
        assert!(error.to_string().contains(part), "{settings}: {error}");
    }
    harness.close([]).await;
}
