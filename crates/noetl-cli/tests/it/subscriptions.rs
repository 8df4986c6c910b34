//! Messages that become executions of a real `noetl dev`, which is killed and has much to do at once.

use std::collections::BTreeMap;
use std::time::Duration;

use noetl_api::calls::{self, Which};
use noetl_api::catalog::RegisterRequest;
use noetl_model::ExecutionId;
use noetl_testkit::nats::TestNats;

use crate::dev_process::DevProcess;

/// How many messages, unless `NOETL_MESSAGES` says otherwise: 50 000 in the long run.
const MESSAGES: usize = 1000;

/// How often the process is killed meanwhile.
const KILLS: usize = 5;

/// The most memory a process may need that has a hundred thousand messages before it, in MiB: what
/// its caches may hold, and some batches.
const MEMORY_MAX: u64 = 700;

#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn messages() -> usize {
    let told = std::env::var("NOETL_MESSAGES").ok();
    told.and_then(|text| text.parse().ok()).unwrap_or(MESSAGES)
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

async fn publish(nats: &TestNats, count: usize) {
    let context = nats.context().await;
    let mut acks = Vec::new();
    for number in 0..count {
        let body = format!("{{\"order\": {number}}}");
        acks.push(context.publish("orders", body.into()).await.unwrap());
        if acks.len() == 500 || number + 1 == count {
            for ack in acks.drain(..) {
                ack.await.unwrap();
            }
        }
    }
}

fn which(subscription: i64, offset: usize, limit: u64) -> Which {
    let (parent, offset) = (Some(ExecutionId::new(subscription)), Some(offset as u64));
    Which { parent, offset, limit: Some(limit), ..Which::default() }
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

/// How many executions there are of each order.
async fn by_order(process: &DevProcess, subscription: i64) -> BTreeMap<i64, usize> {
    let mut found = BTreeMap::new();
    let mut offset = 0;
    loop {
        let page = calls::executions(&which(subscription, offset, 500));
        let page = process.client.ask(page).await.unwrap().value;
        if page.is_empty() {
            return found;
        }
        offset += page.len();
        for view in page {
            let log = process.client.log(ExecutionId::new(view.execution_id.get()), 0, 1).await;
            let log = serde_json::to_value(&log.unwrap().events[0]).unwrap();
            let order = log["context"]["workload"]["order"].as_i64().expect("an order");
            *found.entry(order).or_default() += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_every_message_is_one_execution() {
    let count = messages();
    let data = tempfile::tempdir().unwrap();
    let nats = TestNats::start();
    nats.make_stream("ORDERS", "orders").await;
    // What a killed process held comes again soon.
    nats.make_consumer("ORDERS", "orders", Duration::from_secs(2)).await;
    publish(&nats, count).await;
    let mut process = DevProcess::start(data.path());
    let subscription = register(&process, &nats).await;
    for kill in 1..=KILLS {
        reaches(&process, subscription, count * kill / (KILLS + 1)).await;
        process.kill();
        process = DevProcess::start(data.path());
    }
    reaches(&process, subscription, count).await;
    crate::noetl::until("every message to be acknowledged", async || {
        nats.waiting("ORDERS", "orders").await == 0
    })
    .await;
    let found = by_order(&process, subscription).await;
    assert_eq!(found.len(), count);
    assert!(found.values().all(|executions| *executions == 1), "{found:?}");
    process.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn much_that_waits_at_activation_takes_no_more_memory_than_little() {
    let count = messages() * 2;
    let data = tempfile::tempdir().unwrap();
    let nats = TestNats::start();
    nats.make_stream("ORDERS", "orders").await;
    publish(&nats, count).await;
    let process = DevProcess::start(data.path());
    let subscription = register(&process, &nats).await;
    reaches(&process, subscription, count).await;
    let peak = process.memory_peak();
    assert!(peak < MEMORY_MAX, "{peak} MiB for {count} messages");
    process.kill();
}
