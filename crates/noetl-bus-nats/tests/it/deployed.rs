//! The settings of `deploy/compose/nats.conf`: who may hear what.

use noetl_bus::conformance::settings;
use noetl_bus::{CommandBus as _, CommandReader as _, EventStream as _, StreamSettings};
use noetl_bus_nats::{Address, NatsStream};
use noetl_test_services::nats::TestNats;
use tempfile::TempDir;

use crate::connect;

/// The server of the compose file, on a port and in a directory of its own.
fn deployed(directory: &TempDir) -> TestNats {
    let text = include_str!("../../../../deploy/compose/nats.conf");
    let is_own = |line: &&str| !line.starts_with("http:") && !line.contains("store_dir:");
    let text: String = text.lines().filter(is_own).map(|line| format!("{line}\n")).collect();
    let text = text
        .replace("$NATS_SERVER_PASSWORD", "\"of-server\"")
        .replace("$NATS_WORKER_PASSWORD", "\"of-worker\"");
    let file = directory.path().join("nats.conf");
    std::fs::write(&file, text).expect("a file");
    TestNats::start_with(&["--config", file.to_str().expect("a path")])
}

/// The stream of this name, with the settings of the tests.
fn stream(name: &str) -> StreamSettings {
    let subject = name.replace('_', ".");
    let mut wanted = settings();
    wanted.name = name.to_owned();
    wanted.subjects = vec![format!("{subject}.>")];
    for consumer in &mut wanted.consumers {
        consumer.filter = format!("{subject}.>");
    }
    wanted
}

#[tokio::test]
async fn workers_hear_announcements_and_read_no_events() {
    let directory = TempDir::new().expect("a directory");
    let nats = deployed(&directory);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    let server = connect(&format!("nats://server:of-server@{at}")).await;
    for name in ["noetl_commands", "noetl_events"] {
        server.ensure(&stream(name)).await.expect("a stream");
    }
    let worker = connect(&format!("nats://worker:of-worker@{at}")).await;
    let heard = worker.state("noetl_commands").await.expect("an answer").expect("a stream");
    let reader = heard.consumers.first().expect("a consumer").name.clone();
    let next = worker
        .next(
            "noetl_commands",
            std::slice::from_ref(&reader),
            1,
            std::time::Duration::from_millis(50),
        )
        .await;
    assert!(next.is_ok(), "{next:?}");
    assert!(worker.state("noetl_events").await.is_err(), "events are not theirs");
    let made = worker.ensure(&stream("another")).await;
    assert!(made.is_err(), "{made:?}");
}

#[tokio::test]
async fn nobody_connects_without_a_password() {
    let directory = TempDir::new().expect("a directory");
    let nats = deployed(&directory);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    for url in [format!("nats://{at}"), format!("nats://server:of-worker@{at}")] {
        let stranger = NatsStream::open(Address::parse(&url).expect("a URL"));
        let refused = stranger.ensure(&settings()).await;
        assert!(refused.is_err() && !stranger.is_connected(), "{refused:?}");
    }
}
