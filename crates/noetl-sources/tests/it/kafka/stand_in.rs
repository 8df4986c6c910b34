//! Three brokers that librdkafka makes up, with messages that kcat wrote: what others make of the protocol.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use noetl_test_services::service::TestService;

use crate::suite::{fetched, open};

const WAIT: Duration = Duration::from_millis(200);

/// Runs kcat with these arguments and input lines, and returns its output.
fn kcat(cluster: &TestService, arguments: &[&str], lines: &str) -> String {
    let mut kcat = Command::new("kcat")
        .args(["-q", "-b", cluster.url()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    kcat.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = kcat.wait_with_output().unwrap();
    assert!(output.status.success(), "kcat {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn keys(cluster: &TestService) -> String {
    format!("  brokers: '{}'\n  topic: orders\n  group: g\n", cluster.url())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_every_compression_codec_are_decompressed() {
    let Some(cluster) = TestService::kafka() else { return };
    let mut sent = BTreeSet::new();
    for packing in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let bodies: Vec<String> =
            (0..50).map(|number| format!("{packing} {number} {}", "a".repeat(200))).collect();
        let lines = bodies.join("\n");
        kcat(&cluster, &["-P", "-t", "orders", "-z", packing, "-H", "x-a=1", "-k", "key"], &lines);
        sent.extend(bodies);
    }
    let source = open("kafka", &keys(&cluster)).await.unwrap();
    assert_eq!(source.backlog().await, Ok(Some(250)));
    let deliveries = fetched(&source, 250).await;
    let bodies: BTreeSet<String> = deliveries
        .iter()
        .map(|delivery| String::from_utf8(delivery.message.body.to_vec()).unwrap())
        .collect();
    assert_eq!(bodies, sent);
    let message = &deliveries[0].message;
    assert_eq!(message.headers, [("x-a".to_owned(), "1".to_owned())]);
    assert_eq!(message.attributes["key"], "key");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_see_the_committed_offsets_of_the_group() {
    let Some(cluster) = TestService::kafka() else { return };
    let lines = (0..40).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    for partition in ["0", "1", "2", "3"] {
        kcat(&cluster, &["-P", "-t", "orders", "-p", partition], &lines);
    }
    let source = open("kafka", &keys(&cluster)).await.unwrap();
    let deliveries = fetched(&source, 160).await;
    let partitions: BTreeSet<i64> = deliveries
        .iter()
        .map(|delivery| delivery.message.metadata["partition"].as_i64().unwrap())
        .collect();
    assert_eq!(partitions, BTreeSet::from([0, 1, 2, 3]), "of three brokers");
    for delivery in &deliveries {
        if delivery.message.id != "orders:2:30" {
            delivery.handle.ack().await.unwrap();
        }
    }
    assert_eq!(source.backlog().await, Ok(Some(10)));
    source.close().await;
    drop((deliveries, source));
    let again = open("kafka", &keys(&cluster)).await.unwrap();
    let left: BTreeSet<String> =
        fetched(&again, 10).await.iter().map(|delivery| delivery.message.id.clone()).collect();
    let expected: BTreeSet<String> = (30..40).map(|at| format!("orders:2:{at}")).collect();
    assert_eq!(left, expected);
    drop(again);
    // Another client in the same group continues at the committed offsets.
    let options = ["-G", "g", "-e", "-f", "%t:%p:%o\n", "-X", "auto.offset.reset=earliest"];
    let read = kcat(&cluster, &[&options[..], &["orders"]].concat(), "");
    assert_eq!(read.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_during_a_waiting_fetch() {
    let Some(cluster) = TestService::kafka() else { return };
    kcat(&cluster, &["-P", "-t", "orders"], "first");
    let source = open("kafka", &keys(&cluster)).await.unwrap();
    fetched(&source, 1).await[0].handle.ack().await.unwrap();
    assert_eq!(source.fetch(10, WAIT).await.unwrap().len(), 0);
    kcat(&cluster, &["-P", "-t", "orders"], "second");
    let deliveries = fetched(&source, 1).await;
    assert_eq!(&deliveries[0].message.body[..], b"second");
    deliveries[0].handle.ack().await.unwrap();
    assert_eq!(source.backlog().await, Ok(Some(0)));
}
