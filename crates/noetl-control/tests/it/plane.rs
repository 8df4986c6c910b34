//! A control plane with a worker, for one test.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_control::{ControlPlane, Options};
use noetl_journal::StartRequest;
use noetl_local::Worker;
use noetl_model::{Event, ExecutionId, Fact, Failure, FailureKind, Map, Seq, Tenant, Value};
use noetl_store::{ExecutionRow, Sharded, Store, SystemClock};
use noetl_test_app::{Echo, FaultyStore};
use noetl_tools::{Noop, Tool, ToolCall, ToolRegistry};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// A tool that runs until the test opens it, and counts running calls.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) open: Arc<Semaphore>,
    pub(crate) running: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { open: Arc::new(Semaphore::new(0)), running: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until this many calls have begun since the last time.
    pub(crate) async fn begun(&self, calls: u32) {
        self.running.acquire_many(calls).await.unwrap().forget();
    }
}

#[async_trait]
impl Tool for Gate {
    fn kind(&self) -> &'static str {
        "shell"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        self.running.add_permits(1);
        tokio::select! {
            permit = self.open.acquire() => {
                permit.unwrap().forget();
                Ok(Value::from(call.attempt))
            }
            () = call.cancel.cancelled() => Err(Failure::new(FailureKind::Cancelled, "stopped")),
        }
    }
}

/// A control plane with a worker.
pub(crate) struct TestPlane {
    pub(crate) control: Arc<ControlPlane>,
    pub(crate) tenant: Tenant,
    worker: JoinHandle<()>,
}

impl TestPlane {
    pub(crate) async fn open(store: &Arc<FaultyStore>, slots: usize, gate: &Gate) -> Self {
        Self::with(store, Options { slots, ..Options::default() }, gate).await
    }

    pub(crate) async fn with(store: &Arc<FaultyStore>, options: Options, gate: &Gate) -> Self {
        let control =
            ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await.unwrap();
        Self::of(control, gate)
    }

    /// On several stores, of which `cluster` keeps what is about no execution.
    pub(crate) async fn sharded(
        cluster: &Arc<FaultyStore>,
        shards: &[Arc<FaultyStore>],
        slots: usize,
        gate: &Gate,
    ) -> Self {
        let named = shards.iter().enumerate().map(|(number, shard)| {
            let shard: Arc<dyn Store> = shard.clone();
            (format!("shard-{number}"), shard)
        });
        let routed = Arc::new(Sharded::new(cluster.clone(), named.collect()));
        let alone = routed.shards();
        let options = Options { slots, ..Options::default() };
        let control =
            ControlPlane::open_sharded(options, routed, alone, Arc::new(SystemClock)).await;
        Self::of(control.unwrap(), gate)
    }

    fn of(control: ControlPlane, gate: &Gate) -> Self {
        Self::with_tools(control, ToolRegistry::default().with(Noop).with(Echo).with(gate.clone()))
    }

    /// With these tools.
    pub(crate) fn with_tools(control: ControlPlane, tools: ToolRegistry) -> Self {
        let control = Arc::new(control);
        let worker = Worker::new(control.journal.local.clone(), tools);
        let worker = tokio::spawn(worker.run(Duration::ZERO));
        Self { control, tenant: Tenant::default(), worker }
    }

    /// With a worker that takes nothing.
    pub(crate) fn without_worker(control: ControlPlane) -> Self {
        let worker = tokio::spawn(async {});
        Self { control: Arc::new(control), tenant: Tenant::default(), worker }
    }

    /// Registers these steps and starts them.
    pub(crate) async fn start(&self, workflow: &str) -> ExecutionId {
        self.start_with(workflow, Map::new()).await
    }

    /// Like [`start`](Self::start), with a payload.
    pub(crate) async fn start_with(&self, workflow: &str, payload: Map) -> ExecutionId {
        let catalog = Some(self.register(workflow).await);
        let request = StartRequest { catalog, payload, ..StartRequest::default() };
        self.control.journal.executions.start(&self.tenant, request).await.unwrap().execution
    }

    pub(crate) async fn register(&self, workflow: &str) -> noetl_model::CatalogId {
        let text = format!(
            "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t}}\nworkflow:\n{workflow}"
        );
        let registered = self.control.catalog.register(&self.tenant, text, "playbook", false).await;
        registered.unwrap().0.id
    }

    pub(crate) async fn finished(&self, id: ExecutionId) -> ExecutionRow {
        let ended = self.control.journal.executions.wait_until_finished(&self.tenant, id);
        let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
        ended.expect("the execution ends").unwrap().unwrap()
    }

    pub(crate) async fn log(&self, id: ExecutionId) -> Vec<Event> {
        let log = self.control.journal.executions.events(id, Seq::START, 100_000).await.unwrap();
        for (index, event) in log.iter().enumerate() {
            assert_eq!(event.seq.0, u64::try_from(index).unwrap() + 1, "no gap");
        }
        log
    }

    /// Crashes: nothing is released or reported, and the lease expires by itself.
    pub(crate) async fn killed(self) {
        let Self { control, worker, .. } = self;
        worker.abort();
        // An aborted task has ended once it was awaited.
        let _ = worker.await;
        drop(control);
    }

    /// Stops without waiting for what runs.
    pub(crate) async fn close(self) {
        self.control.drain();
        self.worker.await.unwrap();
        self.control.close().await;
    }
}

/// A chain of `steps` no-op steps.
pub(crate) fn chain(steps: usize) -> String {
    (0..steps)
        .map(|step| {
            let next = if step + 1 < steps {
                format!(", next: {{arcs: [{{step: s{}}}]}}", step + 1)
            } else {
                String::new()
            };
            format!("  - {{step: s{step}, tool: {{kind: noop}}{next}}}\n")
        })
        .collect()
}

/// Counts the events of a log that match.
pub(crate) fn count(log: &[Event], pick: impl Fn(&Fact) -> bool) -> usize {
    log.iter().filter(|event| pick(&event.fact)).count()
}
