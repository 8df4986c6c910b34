//! An app without a local worker, a NATS server, and workers that restart when they end, as under a
//! supervisor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use noetl_bus::EventStream;
use noetl_bus_nats::{Address, NatsStream};
use noetl_model::{ExecutionId, Map, Value};
use noetl_store::Store;
use noetl_test_app::published_worker::{PublishedWorker, PublishedWorkerOptions};
use noetl_test_app::{TestApp, TestAppBuilder};
use noetl_test_services::nats::TestNats;
use tokio::task::JoinHandle;

/// Most time of any wait. Reached only by a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// Interval between scans for lost announcements: far shorter than in production.
const LOOK: Duration = Duration::from_millis(300);

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let comes = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, comes).await.is_ok(), "{what} never came");
}

pub(crate) fn bus(nats: &TestNats) -> Arc<NatsStream> {
    Arc::new(NatsStream::open(Address::parse(nats.url()).unwrap()))
}

fn builder(nats: &TestNats) -> TestAppBuilder {
    TestApp::builder().slots(0).announcing(bus(nats), LOOK)
}

/// Starts an app in memory without a local worker, and waits for its stream of commands: a worker that
/// starts earlier would create its own stream and consumer.
pub(crate) async fn app(nats: &TestNats) -> TestApp {
    let app = early_app(nats).await;
    ready(nats).await;
    app
}

/// Starts an app in memory without waiting for the stream.
pub(crate) async fn early_app(nats: &TestNats) -> TestApp {
    builder(nats).start().await
}

/// Starts an app on another store without waiting for the stream.
pub(crate) async fn app_over(nats: &TestNats, store: Arc<dyn Store>) -> TestApp {
    builder(nats).over(store).start().await
}

/// Waits until the stream of commands and its consumers exist.
pub(crate) async fn ready(nats: &TestNats) {
    let bus = bus(nats);
    bus.connected().await;
    let is_there = async || {
        let state = noetl_bus::CommandBus::state(&*bus, "noetl_commands").await;
        matches!(state, Ok(Some(stream)) if !stream.consumers.is_empty())
    };
    until("the stream of commands", is_there).await;
}

pub(crate) fn options(app: &TestApp, nats: &TestNats, name: &str) -> PublishedWorkerOptions {
    PublishedWorkerOptions::new(name, &app.base, nats.url())
}

/// A worker that restarts until the value is dropped.
pub(crate) struct Supervised(JoinHandle<()>);

impl Supervised {
    pub(crate) fn start(options: PublishedWorkerOptions) -> Self {
        Self(tokio::spawn(async move {
            loop {
                let _ = PublishedWorker::start(options.clone()).ended().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) fn playbook(workload: &str, steps: &str) -> String {
    format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: test, path: tests/test}}\n\
         workload: {workload}\nworkflow:\n{steps}"
    )
}

pub(crate) async fn register(app: &TestApp, text: &str) {
    app.client.register(&RegisterRequest::playbook(text), false).await.unwrap();
}

pub(crate) async fn execute(app: &TestApp, path: &str, payload: Map) -> ExecutionId {
    let request = ExecuteRequest::path(path, payload);
    ExecutionId::new(app.client.execute(&request).await.unwrap().execution_id.get())
}

pub(crate) async fn start(app: &TestApp, text: &str) -> ExecutionId {
    register(app, text).await;
    execute(app, "tests/test", Map::new()).await
}

/// Waits until an execution finished, and returns its status and result.
pub(crate) async fn ended(app: &TestApp, id: ExecutionId) -> (String, Option<Value>) {
    let is_over = async || app.client.status(id).await.unwrap().status != "RUNNING";
    until("the end of an execution", is_over).await;
    let detail = app.client.execution(id).await.unwrap();
    (detail.summary.status, detail.result)
}

/// Counts the events of each type, and checks that the log has no gap.
pub(crate) async fn counted(app: &TestApp, id: ExecutionId) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for (seq, row) in (1..).zip(app.read_log(id).await) {
        assert_eq!(row.seq.0, seq, "a gap in {id}");
        let decided = row.origin == noetl_model::Origin::Decided;
        let kind = row.event_type.unwrap_or_default();
        let name = if decided { kind.into_owned() } else { format!("reported {kind}") };
        *counted.entry(name).or_default() += 1;
    }
    counted
}
