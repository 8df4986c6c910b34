//! Workers that hear of commands on a bus, and what becomes of them without it.

use noetl_test_services::nats::TestNats;
use noetl_test_services::postgres::TestDatabase;
use rustix::process::Signal;

use super::{Site, WorkerProcess, count, log};
use crate::dev_process::DevProcess;
use crate::noetl::{Home, playbook, until};

const STREAM: &str = "noetl_commands";

/// The reader of the default pool.
const READER: &str = "worker-pool";

fn steps(count: usize) -> String {
    let mut text = String::new();
    for number in 1..=count {
        let name = if number == 1 { "start".to_owned() } else { format!("s{number}") };
        let next = match number == count {
            true => String::new(),
            false => format!(", next: {{arcs: [{{step: s{}}}]}}", number + 1),
        };
        text.push_str(&format!("  - {{step: {name}, tool: {{kind: noop}}{next}}}\n"));
    }
    playbook("{}", &text)
}

/// Starts a worker and waits until it receives announcements.
async fn listening(server: &DevProcess, nats: &TestNats, more: &[&str]) -> WorkerProcess {
    let arguments: Vec<&str> = ["--nats-url", nats.url()].iter().chain(more).copied().collect();
    let worker = WorkerProcess::start(&server.client, "w", &arguments);
    hears(&worker, 1).await;
    worker
}

async fn hears(worker: &WorkerProcess, wanted: u64) {
    until("the bus to come or go", async || worker.number("noetl_worker_bus_up") == wanted).await;
}

async fn runs(server: &DevProcess, count_of_steps: usize) {
    let id = server.execute(&steps(count_of_steps)).await;
    assert_eq!(server.ended(id).await, "COMPLETED");
    let log = log(&server.client, id).await;
    assert_eq!(count(&log, "step.exit"), count_of_steps);
    assert_eq!(count(&log, "command.claimed"), count_of_steps, "each was taken once");
}

/// Returns the number of delivered messages without an ack.
async fn unanswered(nats: &TestNats) -> usize {
    let stream = nats.context().await.get_stream(STREAM).await.unwrap();
    stream.consumer_info(READER).await.unwrap().num_ack_pending
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_one_server_gets_announcements_of_another() {
    let (database, nats) = (TestDatabase::new(), TestNats::start());
    let settings = [("NOETL_NATS_URL", nats.url())];
    let here = DevProcess::start_on(&database.url(), 0, &settings);
    let there = DevProcess::start_on(&database.url(), 0, &settings);
    let worker = listening(&here, &nats, &[]).await;
    runs(&there, 5).await;
    assert!(worker.number("noetl_worker_announcements_total") >= 1, "it was woken");
    assert!(worker.ask("/health").contains(r#""bus":"ok""#));
    until("every announcement to be answered for", async || {
        nats.unacked(STREAM, READER).await == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_continues_without_the_bus_and_uses_it_after_its_return() {
    let mut nats = TestNats::start();
    let site = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let worker = listening(&site.server, &nats, &[]).await;
    runs(&site.server, 3).await;
    for _ in 0..2 {
        tokio::task::block_in_place(|| nats.kill());
        hears(&worker, 0).await;
        assert!(worker.ask("/health").contains(r#""bus":"away""#));
        runs(&site.server, 3).await;
        let announced = worker.number("noetl_worker_announcements_total");
        tokio::task::block_in_place(|| nats.restart());
        hears(&worker, 1).await;
        runs(&site.server, 3).await;
        until("announcements to be heard again", async || {
            worker.number("noetl_worker_announcements_total") > announced
        })
        .await;
    }
    assert_eq!(worker.number("noetl_worker_commands_done_total"), 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_bus_delays_nothing() {
    let nats = TestNats::start();
    let site = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let worker = listening(&site.server, &nats, &[]).await;
    nats.pause();
    runs(&site.server, 3).await;
    hears(&worker, 0).await;
    nats.resume();
    hears(&worker, 1).await;
    runs(&site.server, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_continues_after_the_stream_is_deleted() {
    let nats = TestNats::start();
    let site = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let worker = listening(&site.server, &nats, &[]).await;
    nats.delete_stream(STREAM).await;
    runs(&site.server, 3).await;
    // The server makes it again when it has something to announce, and the worker finds it.
    until("the worker to hear of commands again", async || {
        runs(&site.server, 1).await;
        worker.number("noetl_worker_bus_up") == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unannounced_commands_run() {
    let nats = TestNats::start();
    let site = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let worker = listening(&site.server, &nats, &[]).await;
    // Published workers don't have this tool, so the command is not announced.
    let text = playbook("{}", "  - {step: start, tool: {kind: sqlite, query: 'select 1'}}\n");
    let id = site.server.execute(&text).await;
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    assert_eq!(worker.number("noetl_worker_announcements_total"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_is_acked_after_the_server_responds() {
    let nats = TestNats::start();
    let Site { home, mut server } = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let worker = listening(&server, &nats, &[]).await;
    let port = server.client.base().port().unwrap().to_string();
    let context = nats.context().await;
    let mut rounds = 0;
    let _server = loop {
        let announced = worker.number("noetl_worker_announcements_total");
        let unanswered_before = worker.number("noetl_worker_calls_unanswered_total");
        server.kill();
        // Its text does not matter: only its arrival counts.
        let published = context.publish("noetl.commands.shared.1", "{no json".into()).await;
        published.unwrap().await.unwrap();
        until("calls of the worker to fail", async || {
            worker.number("noetl_worker_calls_unanswered_total") > unanswered_before + 2
        })
        .await;
        let has_heard = worker.number("noetl_worker_announcements_total") > announced;
        if has_heard {
            assert_eq!(unanswered(&nats).await, 1);
        }
        server = DevProcess::start_alone(&home.path().join("data"), &port, &[]);
        until("it to be answered for", async || nats.unacked(STREAM, READER).await == 0).await;
        if has_heard {
            break server;
        }
        // The worker was calling the server when it died, and reads no announcement meanwhile.
        rounds += 1;
        assert!(rounds < 20, "the worker hears no announcement while the server is down");
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_gets_announcements_after_its_registration() {
    let nats = TestNats::start();
    let site = Site::new(&[("NOETL_NATS_URL", nats.url())]);
    let arguments = ["--nats-url", nats.url(), "--pool", "gpu"];
    let worker = WorkerProcess::start(site.client(), "w", &arguments);
    let mut request = noetl_api::execute::ExecuteRequest::path("tests/test", Default::default());
    request.execution_pool = Some("gpu".to_owned());
    let text = steps(2);
    let registered = noetl_api::catalog::RegisterRequest::playbook(&text);
    site.client().register(&registered, false).await.unwrap();
    let reply = site.client().execute(&request).await.unwrap();
    let id = noetl_model::ExecutionId::new(reply.execution_id.get());
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    hears(&worker, 1).await;
    worker.send(Signal::TERM);
    let (code, output) = worker.end();
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn an_invalid_bus_address_prevents_the_start_and_is_not_shown() {
    let home = Home::new();
    let mut command = home.command(["worker", "--server", "http://127.0.0.1:9"]);
    let output = home.end_of(command.args(["--nats-url", "http://eve:s3cr3t@h"]));
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("--nats-url: entry 1"), "{output:?}");
    assert!(!output.stderr.contains("s3cr3t"), "{output:?}");
}
