//! Commands of real servers on a real NATS, run by the published worker.

use noetl_test_app::published_worker::{PublishedWorker, PublishedWorkerOptions};
use noetl_test_services::nats::TestNats;
use noetl_test_services::postgres::TestDatabase;
use rustix::process::Signal;

use crate::dev_process::DevProcess;
use crate::noetl::{Home, playbook, until};

const STREAM: &str = "noetl_commands";

fn two_steps() -> String {
    let steps = "  - {step: start, tool: {kind: noop}, next: {arcs: [{step: end}]}}\n  \
                 - {step: end, tool: {kind: shell, command: 'echo done'}}\n";
    playbook("{}", steps)
}

async fn is_ready(nats: &TestNats) {
    let context = nats.context().await;
    until("the stream of commands", async || {
        let Ok(stream) = context.get_stream(STREAM).await else { return false };
        stream.get_info().await.is_ok_and(|info| info.state.consumer_count >= 3)
    })
    .await;
}

fn base(server: &DevProcess) -> String {
    server.client.base().as_str().trim_end_matches('/').to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_worker_runs_announced_commands() {
    let (home, nats) = (Home::new(), TestNats::start());
    let url = format!("sqlite://{}", home.path().join("noetl.db").display());
    let server = DevProcess::start_on(&url, 0, &[("NOETL_NATS_URL", nats.url())]);
    is_ready(&nats).await;
    let worker =
        PublishedWorker::start(PublishedWorkerOptions::new("w1", &base(&server), nats.url()));
    let id = server.execute(&two_steps()).await;
    assert_eq!(server.ended(id).await, "COMPLETED");
    let messages = nats.messages(STREAM).await;
    assert_eq!(messages.len(), 2);
    let output: noetl_model::Value = serde_json::from_slice(&messages[0].payload).unwrap();
    assert_eq!(output["server_url"], base(&server), "the address of the server by default");
    worker.kill().await;
    let (code, _) = server.stop(Signal::TERM);
    assert_eq!(code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn unannounced_commands_of_a_dead_server_are_announced_by_another() {
    let (database, nats, nowhere) = (TestDatabase::new(), TestNats::start(), TestNats::stopped());
    let url = database.url();
    let other = DevProcess::start_on(&url, 0, &[("NOETL_NATS_URL", nats.url())]);
    is_ready(&nats).await;
    // It commits and cannot announce, and then it is gone.
    let doomed = DevProcess::start_on(&url, 0, &[("NOETL_NATS_URL", nowhere.url())]);
    let id = doomed.execute(&two_steps()).await;
    doomed.kill();
    let worker =
        PublishedWorker::start(PublishedWorkerOptions::new("w1", &base(&other), nats.url()));
    assert_eq!(other.ended(id).await, "COMPLETED");
    worker.kill().await;
}

#[test]
fn an_invalid_public_address_prevents_the_start() {
    let home = Home::new();
    let mut command = home.command(["dev", "--port", "0", "--nats-url", "nats://127.0.0.1:1"]);
    command.env("NOETL_PUBLIC_SERVER_URL", "noetl.example");
    let output = home.end_of(&mut command);
    assert_ne!(output.code, Some(0));
    assert!(output.stderr.contains("NOETL_PUBLIC_SERVER_URL"), "{}", output.stderr);
}
