//! The settings of `deploy/compose/nats.conf`: who may hear what.

use futures::{FutureExt as _, StreamExt as _};
use noetl_bus::conformance::settings;
use noetl_bus::{CommandBus as _, CommandConsumer as _, EventStream as _, StreamSettings};
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
async fn workers_receive_announcements_and_read_no_events() {
    let directory = TempDir::new().expect("a directory");
    let nats = deployed(&directory);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    let server = connect(&format!("nats://server:of-server@{at}")).await;
    for name in ["noetl_commands", "noetl_events"] {
        server.ensure(&stream(name)).await.expect("a stream");
    }
    let worker = connect(&format!("nats://worker:of-worker@{at}")).await;
    let state = worker.state("noetl_commands").await.expect("an answer").expect("a stream");
    let reader = state.consumers.first().expect("a consumer").name.clone();
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

/// Connects as a user of the deployed server.
async fn client(at: &str, user: &str) -> async_nats::Client {
    let options =
        async_nats::ConnectOptions::with_user_and_password(user.to_owned(), format!("of-{user}"));
    options.connect(at).await.expect("a connection")
}

/// Publishes to a subject that the user may subscribe to, and waits for the message, so that
/// everything the server sent earlier on this connection has arrived.
async fn round_trip(client: &async_nats::Client, subject: &str, expected: &str) {
    let mut answers = client.subscribe(expected.to_owned()).await.expect("a subscription");
    let reply = expected.replace('*', "round");
    let sent = client.publish_with_reply(subject.to_owned(), reply, "".into()).await;
    sent.expect("a connection");
    let answer = tokio::time::timeout(std::time::Duration::from_secs(20), answers.next()).await;
    answer.expect("the server answers").expect("a message");
}

/// The information that workers may ask for.
const INFO: &str = "$JS.API.STREAM.INFO.noetl_commands";

#[tokio::test]
async fn workers_receive_no_replies_of_others_and_publish_nothing() {
    let directory = TempDir::new().expect("a directory");
    let nats = deployed(&directory);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    let (server, worker) = (client(&at, "server").await, client(&at, "worker").await);

    let mut refused = Vec::new();
    for subject in [">", "_INBOX.>", "_INBOX.server.>", "noetl.events.>", "noetl.commands.>"] {
        refused.push((subject, worker.subscribe(subject).await.expect("a subscription")));
    }
    round_trip(&worker, INFO, "_INBOX.worker.*").await;
    for subject in ["_INBOX.server.a", "noetl.events.a", "noetl.commands.a"] {
        server.publish(subject, "x".into()).await.expect("a connection");
    }
    round_trip(&server, "_INBOX.server.end", "_INBOX.server.*").await;
    round_trip(&worker, INFO, "_INBOX.worker.*").await;
    for (subject, mut subscription) in refused {
        let message = subscription.next().now_or_never().flatten();
        assert!(message.is_none(), "{subject}: {message:?}");
    }

    let mut received = Vec::new();
    for subject in ["_INBOX.server.b", "noetl.events.b", "noetl.commands.b"] {
        received.push((subject, server.subscribe(subject).await.expect("a subscription")));
    }
    round_trip(&server, "_INBOX.server.end", "_INBOX.server.*").await;
    for (subject, _) in &received {
        worker.publish(*subject, "x".into()).await.expect("a connection");
    }
    round_trip(&worker, INFO, "_INBOX.worker.*").await;
    round_trip(&server, "_INBOX.server.end", "_INBOX.server.*").await;
    for (subject, mut subscription) in received {
        let message = subscription.next().now_or_never().flatten();
        assert!(message.is_none(), "{subject}: {message:?}");
    }
}

#[tokio::test]
async fn connections_without_a_password_are_rejected() {
    let directory = TempDir::new().expect("a directory");
    let nats = deployed(&directory);
    let at = nats.url().trim_start_matches("nats://").to_owned();
    for user in ["", "server:of-worker@", "worker:of-server@"] {
        // A client that does not try again, so that its error is the server's answer.
        let stranger = async_nats::connect(format!("nats://{user}{at}")).await;
        assert!(stranger.is_err(), "'{user}' is let in");
    }
    drop(client(&at, "server").await);
}
