//! A control plane with a worker on Postgres, a load for it, and checks of the result.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::StartRequest;
use noetl_model::{CatalogId, EventId, ExecutionId, Fact, Seq, Tenant};
use noetl_remote::EventReport;
use noetl_store::{
    EventLog, ExecutionRow, ExecutionStatus, ExecutionStore, StoreError, SystemClock,
};
use noetl_store_postgres::{Options, PostgresStore};
use tokio::task::{JoinHandle, JoinSet};

use crate::postgres::verify::{Sql, verify_log, verify_positions};

/// Most attempts of a request. Reached only by a stuck execution.
const ATTEMPTS_MAX: usize = 3000;

/// Senders of a load, and executions that each has in flight.
const SENDERS: i64 = 8;
const IN_FLIGHT: usize = 4;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A control plane with a worker.
pub(crate) struct Plane {
    pub(crate) control: Arc<ControlPlane>,
    pub(crate) store: Arc<PostgresStore>,
    worker: JoinHandle<()>,
}

impl Plane {
    pub(crate) async fn open(url: &str) -> Self {
        Self::with(Options::new(url).expect("a URL")).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        // A short timeout notices an unavailable database soon.
        let options = options.acquire_timeout(Duration::from_secs(2));
        let store = Arc::new(PostgresStore::open(options).await.expect("a store"));
        let options = ControlOptions { slots: 8, ..ControlOptions::default() };
        let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await;
        let control = Arc::new(control.expect("a control plane"));
        let worker = noetl_test_app::worker(&control);
        Self { control, store, worker }
    }

    /// Registers a chain of this many steps.
    async fn chain(&self, steps: usize) -> CatalogId {
        let mut text = String::from(
            "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: chain, path: chain}\n\
             workflow:\n",
        );
        for n in 0..steps {
            let next = match n + 1 < steps {
                true => format!(", next: {{arcs: [{{step: s{}}}]}}", n + 1),
                false => String::new(),
            };
            text.push_str(&format!(
                "  - {{step: s{n}, tool: {{kind: noop, result: {n}}}{next}}}\n"
            ));
        }
        let registered =
            self.control.catalog.register(&Tenant::default(), text, "playbook", false).await;
        registered.expect("a playbook").0.id
    }

    /// Starts executions of `steps` steps and reports to them, many in flight at a time, until
    /// [`Load::ends_whole`].
    pub(crate) async fn load(&self, steps: usize) -> Load {
        let catalog = self.chain(steps).await;
        let (is_over, refused) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut senders = JoinSet::new();
        for sender in 1..=SENDERS {
            let (store, is_over) = (self.store.clone(), is_over.clone());
            let caller = Caller { control: self.control.clone(), refused: Arc::clone(&refused) };
            senders.spawn(async move {
                let mut acknowledged: Vec<Acknowledged> = Vec::new();
                while !is_over.load(Ordering::Relaxed) || acknowledged.is_empty() {
                    let execution = caller.start(catalog).await;
                    let id = EventId::new(sender);
                    caller.report(execution, id).await;
                    acknowledged.push((execution, id));
                    if let Some(oldest) = acknowledged.len().checked_sub(IN_FLIGHT) {
                        end_of(&store, acknowledged[oldest].0).await;
                    }
                }
                acknowledged
            });
        }
        Load { catalog, refused, is_over, senders, steps }
    }

    pub(crate) async fn close(self) {
        self.control.drain();
        self.worker.await.expect("a worker that ends");
        self.control.close().await;
    }
}

/// An acknowledged start, and the ID of an acknowledged report.
type Acknowledged = (ExecutionId, EventId);

/// A load in progress.
pub(crate) struct Load {
    /// Playbook of the executions.
    pub(crate) catalog: CatalogId,
    /// Errors that led to a retry.
    pub(crate) refused: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    senders: JoinSet<Vec<Acknowledged>>,
    steps: usize,
}

impl Load {
    /// Stops the load, waits until every execution finished, even without an acknowledged start, and
    /// checks that every log is complete and has each acknowledged report. Returns the number of
    /// executions.
    pub(crate) async fn ends_whole(self, plane: &Plane, database: &impl Sql) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let acknowledged: Vec<_> = self.senders.join_all().await.into_iter().flatten().collect();
        for (execution, report) in acknowledged {
            end_of(&plane.store, execution).await;
            let event = plane.store.find_event(execution, report).await.expect("a read");
            assert!(event.is_some(), "{execution}: an acknowledged report is in the log");
        }
        let all = database.run("select execution_id from noetl.execution");
        let mut checks = JoinSet::new();
        for id in all.lines() {
            let (store, steps) = (plane.store.clone(), self.steps);
            let id = ExecutionId::new(id.parse().expect("an id"));
            checks.spawn(async move { ended_whole(&store, id, steps).await });
        }
        verify_positions(database);
        checks.join_all().await.len()
    }
}

/// Repeats requests until they succeed.
struct Caller {
    control: Arc<ControlPlane>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Caller {
    async fn start(&self, catalog: CatalogId) -> ExecutionId {
        for _ in 0..ATTEMPTS_MAX {
            let request = StartRequest { catalog: Some(catalog), ..StartRequest::default() };
            match self.control.journal.executions.start(&Tenant::default(), request).await {
                Ok(started) => return started.execution,
                Err(error) => self.retry_later(format!("{error:?}")).await,
            }
        }
        panic!("a start was never taken");
    }

    /// Sends a report with its own event ID.
    async fn report(&self, execution: ExecutionId, id: EventId) {
        for _ in 0..ATTEMPTS_MAX {
            let event_report = EventReport {
                execution,
                event: Some(id),
                event_type: "progress".into(),
                step: "s0".into(),
                status: None,
                payload: None,
                meta: None,
                worker: None,
                columns: None,
            };
            match self.control.remote.reports.record(&Tenant::default(), event_report).await {
                Ok(_) => return,
                Err(error) => self.retry_later(format!("{error:?}")).await,
            }
        }
        panic!("a report was never taken");
    }

    async fn retry_later(&self, why: String) {
        self.refused.lock().expect("no panic").push(why);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until an execution finished, and ignores errors of the store.
async fn end_of(store: &PostgresStore, execution: ExecutionId) -> ExecutionRow {
    for _ in 0..ATTEMPTS_MAX {
        match store.execution(&Tenant::default(), execution).await {
            Ok(row) => {
                let row = row.unwrap_or_else(|| panic!("{execution}: acknowledged and gone"));
                if row.status.is_final() {
                    return row;
                }
            }
            Err(StoreError::Row(error)) => panic!("{error}"),
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
    let log = store.read(execution, Seq::START, 10_000).await.unwrap_or_default();
    panic!("{execution} is stuck: {log:#?}");
}

/// Waits until a chain finished and checks that its log enters, completes, and exits each step once.
async fn ended_whole(store: &PostgresStore, execution: ExecutionId, steps: usize) {
    let row = end_of(store, execution).await;
    assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
    let mut times: HashMap<(Arc<str>, &str), usize> = HashMap::new();
    for event in store.read(execution, Seq::START, 100_000).await.expect("a log") {
        let (step, what) = match event.fact {
            Fact::StepEntered { step, .. } => (step, "entered"),
            Fact::CallDone { step, .. } => (step, "answered"),
            Fact::StepExited { step, .. } => (step, "left"),
            _ => continue,
        };
        *times.entry((step, what)).or_default() += 1;
    }
    assert_eq!(times.len(), steps * 3, "{execution}: {times:?}");
    assert!(times.values().all(|&times| times == 1), "{execution}: {times:?}");
    verify_log(store, execution).await;
}
