//! What every source has to do, asked of each on a real server.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use noetl_egress::EgressPolicy;
use noetl_playbook::check_subscription;
use noetl_sources::{Delivery, Source, SourceError, SourceRegistry};
use noetl_test_app::TestApp;
use serde_json::json;

use crate::hall::{Hall, until};

const WAIT: Duration = Duration::from_millis(200);

/// How often a source is asked before it counts as having nothing to say.
const LOOKS: usize = 150;

/// The sources of one process: what they know of each other's messages is theirs together.
static SOURCES: LazyLock<SourceRegistry> =
    LazyLock::new(|| SourceRegistry::standard(EgressPolicy::default()));

/// A server with a place for messages.
pub(crate) trait Venue: Sized {
    /// The kind of the source, as documents write it.
    const SOURCE: &'static str;

    /// Whether what was not answered for comes again from another process.
    const KEEPS: bool = true;

    /// Whether the server only knows how far it was read, so that what follows a gap comes with it.
    const POSITIONS: bool = false;

    /// The largest body it takes.
    const BYTES_MAX: usize = 10 << 20;

    /// A server, alone for this test when it is to be stopped; nothing when there is none to be had.
    async fn new(alone: bool) -> Option<Self>;

    /// The keys of `spec` that reach it, one on each line.
    fn keys(&self) -> String;

    /// Sends messages; when this returns, the server has them.
    async fn send(&self, bodies: &[&[u8]]);

    /// Ends the server at once.
    fn stop(&mut self);

    /// Starts it again with what it kept.
    fn start(&mut self);
}

/// Opens the source of a document with these keys.
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

async fn opened<V: Venue>(venue: &V) -> Arc<dyn Source> {
    open(V::SOURCE, &venue.keys()).await.unwrap()
}

/// Fetches until so many have come.
pub(crate) async fn fetched(source: &Arc<dyn Source>, count: usize) -> Vec<Delivery> {
    let mut found = Vec::new();
    for _ in 0..LOOKS {
        found.extend(source.fetch(count - found.len(), WAIT).await.unwrap());
        if found.len() == count {
            return found;
        }
        for held in &found {
            held.handle.extend().await.unwrap();
        }
    }
    panic!("{} of {count} messages came", found.len());
}

fn ids(found: &[Delivery]) -> BTreeSet<String> {
    found.iter().map(|delivery| delivery.message.id.clone()).collect()
}

pub(crate) async fn every_ack_verb_has_its_effect<V: Venue>() {
    let Some(venue) = V::new(false).await else { return };
    let source = opened(&venue).await;
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0, "it does not wait for ever");
    venue.send(&[b"{\"n\":0}", b"{\"n\":1}", b"{\"n\":2}", b"{\"n\":3}"]).await;
    let found = fetched(&source, 4).await;
    assert_eq!(ids(&found).len(), 4, "each has an id of its own");
    let bodies: BTreeSet<Vec<u8>> =
        found.iter().map(|delivery| delivery.message.body.to_vec()).collect();
    let read = |body: &Vec<u8>| serde_json::from_slice::<serde_json::Value>(body).unwrap();
    let numbers: BTreeSet<i64> =
        bodies.iter().map(|body| read(body)["n"].as_i64().unwrap()).collect();
    assert_eq!(numbers, BTreeSet::from([0, 1, 2, 3]));
    if let Some(waiting) = source.backlog().await.unwrap() {
        assert_eq!(waiting, 4, "what is handed out still waits");
    }
    let [first, second, third, fourth]: [Delivery; 4] = found.try_into().ok().unwrap();
    first.handle.ack().await.unwrap();
    second.handle.nack(Duration::ZERO).await.unwrap();
    third.handle.term().await.unwrap();
    fourth.handle.extend().await.unwrap();
    let open = BTreeSet::from([second.message.id.clone(), fourth.message.id.clone()]);
    // Nothing is said of the fourth any more.
    drop((first, second, third, fourth));
    let again = fetched(&source, 2).await;
    assert_eq!(ids(&again), open, "a repeat is known by its id");
    if V::KEEPS {
        source.close().await;
        drop((again, source));
        let source = opened(&venue).await;
        let again = fetched(&source, if V::POSITIONS { 3 } else { 2 }).await;
        assert!(ids(&again).is_superset(&open), "it outlives whoever held it: {:?}", ids(&again));
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

pub(crate) async fn a_server_restart_loses_no_messages<V: Venue>() {
    let Some(mut venue) = V::new(true).await else { return };
    venue.stop();
    let absent = open(V::SOURCE, &venue.keys()).await.err();
    assert!(matches!(absent, Some(SourceError::Away(_))), "{absent:?}");
    venue.start();
    let source = opened(&venue).await;
    venue.send(&[b"0", b"1"]).await;
    let found = fetched(&source, 2).await;
    found[0].handle.ack().await.unwrap();
    let left = found[1].message.id.clone();
    venue.stop();
    let mut lost = Ok(());
    for _ in 0..LOOKS {
        match source.fetch(10, WAIT).await {
            Ok(found) => assert!(found.is_empty(), "nothing comes from who is not there"),
            Err(error) => {
                lost = Err(error);
                break;
            }
        }
    }
    assert!(matches!(lost, Err(SourceError::Away(_))), "{lost:?}");
    let unsaid = found[1].handle.ack().await;
    if V::KEEPS {
        assert!(unsaid.is_err(), "who is not there hears no word");
    }
    tokio::time::timeout(Duration::from_secs(20), source.close()).await.expect("it ends anyway");
    drop((found, source));
    venue.start();
    let source = opened(&venue).await;
    venue.send(&[b"2"]).await;
    let found = fetched(&source, if V::KEEPS { 2 } else { 1 }).await;
    assert_eq!(ids(&found).contains(&left), V::KEEPS);
    for delivery in &found {
        delivery.handle.ack().await.unwrap();
    }
    source.close().await;
}

pub(crate) async fn each_message_becomes_one_execution_or_a_dead_letter<V: Venue>() {
    let Some(venue) = V::new(false).await else { return };
    let hall = Hall::new(TestApp::start(4).await).await;
    let keys = format!("{}  dedup: {{enabled: true, window_secs: 3600}}\n", venue.keys());
    hall.document_of(V::SOURCE, "sub/orders", &keys).await;
    let id = hall.subscribe("sub/orders").await;
    let runtime = hall.runtime();
    until("somebody to listen", async || {
        hall.types(id).await.iter().any(|found| found == "subscription.source.connected")
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
    venue.send(&sent).await;
    hall.started(id, 3).await;
    let expected = if is_large { 2 } else { 1 };
    until("the dead letters", async || hall.letters(id).await.len() == expected).await;
    let mut orders = Vec::new();
    for execution in hall.executions(id).await {
        let workload = hall.workload(execution).await;
        assert_eq!(
            (&workload["source"], &workload["subscription"]),
            (&json!(V::SOURCE), &json!("sub/orders"))
        );
        orders.push(workload["order"].as_i64().unwrap());
    }
    orders.sort_unstable();
    assert_eq!(orders, [1, 2, 3]);
    let mut codes = Vec::new();
    for letter in hall.letters(id).await {
        let code = letter["code"].as_str().unwrap().to_owned();
        if code == "too_large" {
            let key = letter["object"].as_str().unwrap();
            assert!(
                hall.app.control.data.objects.get(None, key).await.unwrap().bytes == large,
                "whole"
            );
        }
        codes.push(code);
    }
    codes.sort_unstable();
    assert_eq!(codes, if is_large { vec!["too_deep", "too_large"] } else { vec!["too_deep"] });
    hall.close([runtime]).await;
    // All of it was answered for.
    let left = opened(&venue).await.fetch(10, WAIT).await.unwrap();
    assert!(left.is_empty(), "{:?}", ids(&left));
}

/// Asks all of it of a venue.
macro_rules! suite {
    ($name:ident, $venue:ty) => {
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn every_ack_verb_has_its_effect() {
                crate::suite::every_ack_verb_has_its_effect::<$venue>().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn a_server_restart_loses_no_messages() {
                crate::suite::a_server_restart_loses_no_messages::<$venue>().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn each_message_becomes_one_execution_or_a_dead_letter() {
                crate::suite::each_message_becomes_one_execution_or_a_dead_letter::<$venue>().await;
            }
        }
    };
}
pub(crate) use suite;
