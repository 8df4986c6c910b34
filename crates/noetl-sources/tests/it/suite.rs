//! Conformance suite that every source passes against a real server.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_playbook::check_subscription;
use noetl_sources::{Delivery, Source, SourceError, SourceRegistry};
use noetl_test_app::TestApp;
use serde_json::json;

use crate::harness::{Harness, until};

const WAIT: Duration = Duration::from_millis(200);

/// Maximum number of fetches that wait for messages.
const FETCHES_MAX: usize = 150;

/// Sources of one process, which share state such as recent message IDs.
static SOURCES: LazyLock<SourceRegistry> =
    LazyLock::new(|| SourceRegistry::standard(EgressPolicy::default()));

/// Server with a queue for messages.
pub(crate) trait SourceServer: Sized {
    /// Source kind in documents.
    const SOURCE: &'static str;

    /// Whether unacked messages are redelivered to another process.
    const IS_DURABLE: bool = true;

    /// Whether the server only stores a position, so that messages after an unacked one are
    /// redelivered, too.
    const POSITIONS: bool = false;

    /// Maximum body size in bytes.
    const BYTES_MAX: usize = 10 << 20;

    /// Starts a server, used only by this test if it is to be stopped. Returns `None` if the server
    /// program is not installed.
    async fn new(alone: bool) -> Option<Self>;

    /// Returns the connection keys of `spec`, one per line.
    fn keys(&self) -> String;

    /// Sends messages and waits until the server has stored them.
    async fn send(&self, bodies: &[&[u8]]);

    /// Kills the server.
    fn stop(&mut self);

    /// Restarts the server with its data.
    fn start(&mut self);
}

/// Opens the source of a document with these keys of `spec`.
pub(crate) async fn open(kind: &str, keys: &str) -> Result<Arc<dyn Source>, SourceError> {
    let text = format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: a, path: sub/a}}\nspec:\n  \
         source: {kind}\n  mode: pull\n  dispatch: {{playbook: p}}\n{keys}"
    );
    let checked = check_subscription(&text);
    let subscription = checked.subscription.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    let opener = SOURCES.get(kind).expect("a source of that kind");
    opener.open(&subscription, &subscription.connection).await
}

async fn opened<V: SourceServer>(server: &V) -> Arc<dyn Source> {
    open(V::SOURCE, &server.keys()).await.unwrap()
}

/// Fetches until `count` messages have arrived.
pub(crate) async fn fetched(source: &Arc<dyn Source>, count: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    for _ in 0..FETCHES_MAX {
        deliveries.extend(source.fetch(count - deliveries.len(), WAIT).await.unwrap());
        if deliveries.len() == count {
            return deliveries;
        }
        for delivery in &deliveries {
            delivery.handle.extend().await.unwrap();
        }
    }
    panic!("{} of {count} messages came", deliveries.len());
}

fn ids(deliveries: &[Delivery]) -> BTreeSet<String> {
    deliveries.iter().map(|delivery| delivery.message.id.clone()).collect()
}

pub(crate) async fn every_ack_verb_has_its_effect<V: SourceServer>() {
    let Some(server) = V::new(false).await else { return };
    let source = opened(&server).await;
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0, "it does not wait for ever");
    server.send(&[b"{\"n\":0}", b"{\"n\":1}", b"{\"n\":2}", b"{\"n\":3}"]).await;
    let deliveries = fetched(&source, 4).await;
    assert_eq!(ids(&deliveries).len(), 4, "each has an id of its own");
    let bodies: BTreeSet<Vec<u8>> =
        deliveries.iter().map(|delivery| delivery.message.body.to_vec()).collect();
    let read = |body: &Vec<u8>| serde_json::from_slice::<serde_json::Value>(body).unwrap();
    let numbers: BTreeSet<i64> =
        bodies.iter().map(|body| read(body)["n"].as_i64().unwrap()).collect();
    assert_eq!(numbers, BTreeSet::from([0, 1, 2, 3]));
    if let Some(waiting) = source.backlog().await.unwrap() {
        assert_eq!(waiting, 4, "what is handed out still waits");
    }
    let [first, second, third, fourth]: [Delivery; 4] = deliveries.try_into().ok().unwrap();
    first.handle.ack().await.unwrap();
    second.handle.nack(Duration::ZERO).await.unwrap();
    third.handle.term().await.unwrap();
    fourth.handle.extend().await.unwrap();
    let open = BTreeSet::from([second.message.id.clone(), fourth.message.id.clone()]);
    // The fourth message is not answered.
    drop((first, second, third, fourth));
    let again = fetched(&source, 2).await;
    assert_eq!(ids(&again), open, "a repeat is known by its id");
    if V::IS_DURABLE {
        source.close().await;
        drop((again, source));
        let source = opened(&server).await;
        let again = fetched(&source, if V::POSITIONS { 3 } else { 2 }).await;
        assert!(ids(&again).is_superset(&open), "redelivered after the close: {:?}", ids(&again));
        for delivery in &again {
            delivery.handle.ack().await.unwrap();
        }
        assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0);
        if let Some(waiting) = source.backlog().await.unwrap() {
            assert_eq!(waiting, 0);
        }
        source.close().await;
    }
}

pub(crate) async fn a_server_restart_loses_no_messages<V: SourceServer>() {
    let Some(mut server) = V::new(true).await else { return };
    server.stop();
    let absent = open(V::SOURCE, &server.keys()).await.err();
    assert!(matches!(absent, Some(SourceError::Away(_))), "{absent:?}");
    server.start();
    let source = opened(&server).await;
    server.send(&[b"0", b"1"]).await;
    let deliveries = fetched(&source, 2).await;
    deliveries[0].handle.ack().await.unwrap();
    let left = deliveries[1].message.id.clone();
    server.stop();
    let mut lost = Ok(());
    for _ in 0..FETCHES_MAX {
        match source.fetch(10, WAIT).await {
            Ok(deliveries) => {
                assert!(deliveries.is_empty(), "a stopped server delivers no messages")
            }
            Err(error) => {
                lost = Err(error);
                break;
            }
        }
    }
    assert!(matches!(lost, Err(SourceError::Away(_))), "{lost:?}");
    let unsaid = deliveries[1].handle.ack().await;
    if V::IS_DURABLE {
        assert!(unsaid.is_err(), "a stopped server acks no message");
    }
    tokio::time::timeout(Duration::from_secs(20), source.close()).await.expect("it ends anyway");
    drop((deliveries, source));
    server.start();
    let source = opened(&server).await;
    server.send(&[b"2"]).await;
    let deliveries = fetched(&source, if V::IS_DURABLE { 2 } else { 1 }).await;
    assert_eq!(ids(&deliveries).contains(&left), V::IS_DURABLE);
    for delivery in &deliveries {
        delivery.handle.ack().await.unwrap();
    }
    source.close().await;
}

pub(crate) async fn each_message_becomes_one_execution_or_a_dead_letter<V: SourceServer>() {
    let Some(server) = V::new(false).await else { return };
    let harness = Harness::new(TestApp::start(4).await).await;
    let keys = format!("{}  dedup: {{enabled: true, window_secs: 3600}}\n", server.keys());
    harness.register_document(V::SOURCE, "sub/orders", &keys).await;
    let id = harness.subscribe("sub/orders").await;
    let runtime = harness.runtime();
    until("the connection of the source", async || {
        harness
            .types(id)
            .await
            .iter()
            .any(|event_type| event_type == "subscription.source.connected")
    })
    .await;
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let large = vec![b'7'; V::BYTES_MAX];
    let is_large = large.len() > 4 << 20;
    let mut sent: Vec<&[u8]> = vec![b"{\"order\": 1}", deep.as_bytes(), b"{\"order\": 2}"];
    if is_large {
        sent.extend([large.as_slice(), b"{\"order\": 3}"]);
    } else {
        sent.push(b"{\"order\": 3}");
    }
    server.send(&sent).await;
    harness.wait_for_executions(id, 3).await;
    let expected = if is_large { 2 } else { 1 };
    until("the dead letters", async || harness.dead_letters(id).await.len() == expected).await;
    let mut orders = Vec::new();
    for execution in harness.executions(id).await {
        let workload = harness.workload(execution).await;
        assert_eq!(
            (&workload["source"], &workload["subscription"]),
            (&json!(V::SOURCE), &json!("sub/orders"))
        );
        orders.push(workload["order"].as_i64().unwrap());
    }
    orders.sort_unstable();
    assert_eq!(orders, [1, 2, 3]);
    let mut codes = Vec::new();
    for letter in harness.dead_letters(id).await {
        let code = letter["code"].as_str().unwrap().to_owned();
        if code == "too_large" {
            let key = letter["object"].as_str().unwrap();
            assert!(
                harness.app.control.data.objects.get(None, key).await.unwrap().bytes == large,
                "whole"
            );
        }
        codes.push(code);
    }
    codes.sort_unstable();
    assert_eq!(codes, if is_large { vec!["too_deep", "too_large"] } else { vec!["too_deep"] });
    harness.close([runtime]).await;
    // Every message was acked.
    let left = opened(&server).await.fetch(10, WAIT).await.unwrap();
    assert!(left.is_empty(), "{:?}", ids(&left));
}

/// Runs the suite against a server.
macro_rules! suite {
    ($name:ident, $server:ty) => {
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn every_ack_verb_has_its_effect() {
                crate::suite::every_ack_verb_has_its_effect::<$server>().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_server_restart_loses_no_messages() {
                crate::suite::a_server_restart_loses_no_messages::<$server>().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn each_message_becomes_one_execution_or_a_dead_letter() {
                crate::suite::each_message_becomes_one_execution_or_a_dead_letter::<$server>()
                    .await;
            }
        }
    };
}
pub(crate) use suite;
