//! Messages that become executions of real processes, which are paused, killed and have much to do at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use noetl_api::calls::{self, ExecutionQuery};
use noetl_api::catalog::RegisterRequest;
use noetl_model::ExecutionId;
use noetl_test_services::nats::TestNats;

use crate::dev_process::DevProcess;
use crate::noetl::PROGRAM;

/// Default number of messages; `NOETL_MESSAGES` overrides it, with 50,000 in the long run.
const MESSAGES: usize = 1000;

/// Number of kills of the process.
const KILLS: usize = 5;

/// Messages of each of two equal rounds whose memory is compared. The first fills the caches: the
/// largest holds 64 MiB of database pages.
const ROUND: usize = 600;

/// Bytes of a message body in these rounds.
const BODY_BYTES: usize = 120 * 1024;

/// MiB by which the second round may raise the peak memory of the process: some batches in flight. A
/// process that retained every body would need 70 more.
const GROWTH_MAX: u64 = 32;

#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn messages() -> usize {
    let setting = std::env::var("NOETL_MESSAGES").ok();
    setting.and_then(|text| text.parse().ok()).unwrap_or(MESSAGES)
}

const PLAYBOOK: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: o, path: tests/order}\n\
                        workflow:\n  - {step: start, tool: {kind: noop}}\n";

async fn register(process: &DevProcess, nats: &TestNats) -> i64 {
    let document = format!(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: o, path: sub/orders}}\nspec:\n  \
         source: nats\n  mode: pull\n  url: {}\n  stream: ORDERS\n  consumer: orders\n  \
         dedup: {{enabled: true, window_secs: 86400}}\n  dispatch: {{playbook: tests/order}}\n",
        nats.url(),
    );
    process.client.register(&RegisterRequest::playbook(PLAYBOOK), false).await.unwrap();
    let resource_type = "Subscription".to_owned();
    let request = RegisterRequest { content: document, resource_type };
    process.client.register(&request, false).await.unwrap();
    let status = process.client.ask(calls::subscribe("sub/orders")).await.unwrap();
    status.value.subscription_id.get()
}

/// Publishes messages, and waits until the stream has them.
async fn publish(nats: &TestNats, numbers: Range<usize>) {
    publish_padded(nats, numbers, 0).await;
}

/// Publishes messages with this many more bytes in each, and waits until the stream has them.
async fn publish_padded(nats: &TestNats, numbers: Range<usize>, padding: usize) {
    let padding = "x".repeat(padding);
    let context = nats.context().await;
    let mut acks = Vec::new();
    let last = numbers.end;
    for number in numbers {
        let body = format!("{{\"order\": {number}, \"padding\": \"{padding}\"}}");
        acks.push(context.publish("orders", body.into()).await.unwrap());
        if acks.len() == 500 || number + 1 == last {
            for ack in acks.drain(..) {
                ack.await.unwrap();
            }
        }
    }
}

async fn moved(process: &DevProcess, subscription: i64, action: &str) {
    process.client.ask(calls::move_subscription(subscription, action)).await.unwrap();
}

fn which(subscription: i64, offset: usize, limit: u64) -> ExecutionQuery {
    let (parent, offset) = (Some(ExecutionId::new(subscription)), Some(offset as u64));
    ExecutionQuery { parent, offset, limit: Some(limit), ..ExecutionQuery::default() }
}

/// Waits until so many executions were started.
async fn reaches(process: &DevProcess, subscription: i64, count: usize) {
    if count == 0 {
        return;
    }
    for _ in 0..6000 {
        let page = calls::executions(&which(subscription, count - 1, 1));
        if !process.client.ask(page).await.unwrap().value.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("there are not {count} executions after 10 minutes");
}

/// Counts the executions of each order number.
async fn by_order(process: &DevProcess, subscription: i64) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    let mut offset = 0;
    loop {
        let page = calls::executions(&which(subscription, offset, 500));
        let page = process.client.ask(page).await.unwrap().value;
        if page.is_empty() {
            return counts;
        }
        offset += page.len();
        for view in page {
            let log = process.client.log(ExecutionId::new(view.execution_id.get()), 0, 1).await;
            let log = serde_json::to_value(&log.unwrap().events[0]).unwrap();
            let order = log["context"]["workload"]["order"].as_i64().expect("an order");
            *counts.entry(order).or_default() += 1;
        }
    }
}

/// Half of the messages wait when it begins; the others arrive while it is paused, resumed, killed, and not there.
#[tokio::test(flavor = "multi_thread")]
async fn every_message_starts_one_execution_when_paused_and_killed_at_any_moment() {
    let count = messages();
    let data = tempfile::tempdir().unwrap();
    let nats = Arc::new(TestNats::start());
    nats.create_stream("ORDERS", "orders").await;
    // Messages of a killed process are redelivered soon.
    nats.create_consumer("ORDERS", "orders", Duration::from_secs(2)).await;
    publish(&nats, 0..count / 2).await;
    let mut process = DevProcess::start(data.path());
    let subscription = register(&process, &nats).await;
    let sender = nats.clone();
    let others = tokio::spawn(async move {
        for first in (count / 2..count).step_by(100) {
            publish(&sender, first..count.min(first + 100)).await;
        }
    });
    let part = |of: usize| count * of / (2 * KILLS + 1);
    for kill in 1..=KILLS {
        reaches(&process, subscription, part(2 * kill - 1)).await;
        moved(&process, subscription, "pause").await;
        if kill % 2 == 0 {
            process.kill();
            process = DevProcess::start(data.path());
            assert_eq!(state(&process, subscription).await, "PAUSED", "a pause outlives a crash");
        }
        moved(&process, subscription, "resume").await;
        reaches(&process, subscription, part(2 * kill)).await;
        process.kill();
        process = DevProcess::start(data.path());
    }
    others.await.unwrap();
    reaches(&process, subscription, count).await;
    crate::noetl::until("every message to be acknowledged", async || {
        nats.unacked("ORDERS", "orders").await == 0
    })
    .await;
    let by_order_number = by_order(&process, subscription).await;
    assert_eq!(by_order_number.len(), count);
    assert!(by_order_number.values().all(|count| *count == 1), "{by_order_number:?}");
    process.kill();
}

/// A worker that acts on subscriptions.
struct SubscriptionWorker(std::process::Child);

impl SubscriptionWorker {
    fn start(process: &DevProcess, name: &str, more: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = std::process::Command::new(PROGRAM);
        command.args(["worker", "--server", process.client.base().as_str(), "--name", name]);
        command.args(more).envs(variables.iter().copied()).env("NOETL_LEASE_SECS", "3");
        Self(command.stderr(std::process::Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    /// Tells it to stop, and waits until it has.
    fn stop(&mut self) -> std::process::ExitStatus {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap()
    }
}

impl Drop for SubscriptionWorker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn state(process: &DevProcess, subscription: i64) -> String {
    process.client.ask(calls::subscription(subscription)).await.unwrap().value.state
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_run_subscriptions_of_a_server_and_replace_lost_workers() {
    let data = tempfile::tempdir().unwrap();
    let nats = TestNats::start();
    nats.create_stream("ORDERS", "orders").await;
    nats.create_consumer("ORDERS", "orders", Duration::from_secs(2)).await;
    let server = DevProcess::start_server(data.path());
    let subscription = register(&server, &nats).await;
    let first = SubscriptionWorker::start(&server, "w1", &["--subscriptions", "--slots", "1"], &[]);
    publish(&nats, 0..50).await;
    reaches(&server, subscription, 50).await;
    let mut second =
        SubscriptionWorker::start(&server, "w2", &["--subscriptions", "--slots", "1"], &[]);
    // Like a crash: the lease is not released.
    drop(first);
    publish(&nats, 50..100).await;
    reaches(&server, subscription, 100).await;
    // The server is gone while messages arrive; the worker waits for it.
    let port = server.client.base().as_str().rsplit_once(':').unwrap().1;
    let port = port.trim_end_matches('/').to_owned();
    server.kill();
    publish(&nats, 100..150).await;
    let server = DevProcess::start_server_at(data.path(), &port);
    reaches(&server, subscription, 150).await;
    let executions = by_order(&server, subscription).await;
    assert!(
        executions.len() == 150 && executions.values().all(|count| *count == 1),
        "{executions:?}"
    );
    assert!(second.stop().success());
    assert_eq!(state(&server, subscription).await, "ACTIVE", "it goes on with the next");
    server.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_worker_activates_its_subscription_and_deactivates_it_on_exit() {
    let data = tempfile::tempdir().unwrap();
    let nats = TestNats::start();
    nats.create_stream("ORDERS", "orders").await;
    let server = DevProcess::start_server(data.path());
    let subscription = register(&server, &nats).await;
    assert_eq!(state(&server, subscription).await, "REGISTERED");
    let variables = [("WORKER_MODE", "subscription"), ("NOETL_SUBSCRIPTION_PATH", "sub/orders")];
    let mut worker = SubscriptionWorker::start(&server, "w1", &[], &variables);
    publish(&nats, 0..10).await;
    reaches(&server, subscription, 10).await;
    assert_eq!(state(&server, subscription).await, "ACTIVE");
    assert!(worker.stop().success());
    assert_eq!(state(&server, subscription).await, "DEACTIVATED");
    server.kill();
}

/// Returns `true` if some round of messages raised the peak memory, in MiB, by little. Retained
/// messages raise it in every round; a single round may raise it by chance.
fn is_bounded(peaks: &[u64]) -> bool {
    peaks.windows(2).any(|pair| pair[1] - pair[0] <= GROWTH_MAX)
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_messages_of_a_paused_subscription_are_not_retained_in_memory() {
    let data = tempfile::tempdir().unwrap();
    let nats = TestNats::start();
    nats.create_stream("ORDERS", "orders").await;
    // Messages released by a pause are redelivered soon.
    nats.create_consumer("ORDERS", "orders", Duration::from_secs(5)).await;
    let process = DevProcess::start(data.path());
    let subscription = register(&process, &nats).await;
    crate::noetl::until("the subscription to be active", async || {
        state(&process, subscription).await == "ACTIVE"
    })
    .await;
    let mut peaks = Vec::new();
    for round in 0..3 {
        // Two bursts wait for each round, so that each round has met all that a resume needs.
        for burst in 2 * round..2 * round + 2 {
            let (first, end) = (burst * ROUND / 2, (burst + 1) * ROUND / 2);
            moved(&process, subscription, "pause").await;
            publish_padded(&nats, first..end, BODY_BYTES).await;
            moved(&process, subscription, "resume").await;
            reaches(&process, subscription, end).await;
        }
        peaks.push(process.memory_peak());
    }
    println!("peaks in MiB: {peaks:?}");
    assert!(is_bounded(&peaks), "peaks in MiB: {peaks:?}");
    process.kill();
}

#[test]
fn retained_message_bodies_exceed_the_bound() {
    let round = u64::try_from(ROUND * BODY_BYTES).unwrap() / (1024 * 1024);
    for retained in [round, round / 2] {
        assert!(
            !is_bounded(&[300, 300 + retained, 300 + 2 * retained]),
            "{retained} MiB per round"
        );
    }
}
