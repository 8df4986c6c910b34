//! A control plane with a local worker and its HTTP server on a free local port.

use std::sync::Arc;
use std::time::Duration;

use noetl_api::Client;
use noetl_bus::CommandBus;
use noetl_catalog::QuotaSettings;
use noetl_control::ControlPlane;
use noetl_journal::Traces;
use noetl_local::Worker;
use noetl_model::row::EventRow;
use noetl_model::{Clock, ExecutionId, Seq};
use noetl_publishing::{AnnouncerHandle, AnnouncerOptions};
use noetl_secrets::EncryptionKey;
use noetl_server::App;
use noetl_store::{OutboxOptions, Store, SystemClock};
use noetl_tools::ToolRegistry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::faulty_store::FaultyStore;
use crate::tools::{Echo, Noop};

/// Time that running commands get to finish when an app closes. Tests wait for what they need.
const GRACE: Duration = Duration::from_millis(200);

/// Checks, and time between them, that a closed app dropped its control plane: ten seconds in all, far
/// more than a task needs to end on a busy machine.
const RELEASE_CHECKS: u32 = 1000;
const RELEASE_INTERVAL: Duration = Duration::from_millis(10);

pub struct TestAppBuilder {
    slots: usize,
    tools: ToolRegistry,
    clock: Arc<dyn Clock>,
    store: Option<Arc<FaultyStore>>,
    outbox: OutboxOptions,
    over: Option<Arc<dyn Store>>,
    encryption_key: Option<EncryptionKey>,
    audit_required: bool,
    options: noetl_server::Options,
    bus: Option<(Arc<dyn CommandBus>, Duration)>,
    traces: Traces,
    quotas: QuotaSettings,
}

impl TestAppBuilder {
    /// Sets how many commands the local worker runs at a time; 0 leaves them to other workers.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// Sets the local worker's tools.
    #[must_use]
    pub fn tools(mut self, tools: ToolRegistry) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the control plane's clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Uses the store of an earlier app, to continue its executions.
    #[must_use]
    pub fn store(mut self, store: Arc<FaultyStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Enables the outbox of the store.
    #[must_use]
    pub fn outbox(mut self) -> Self {
        self.outbox.is_on = true;
        self
    }

    /// Sets the token of the internal routes.
    #[must_use]
    pub fn internal_token(mut self, token: &str) -> Self {
        let token = token.to_owned();
        self.options.internal_token =
            noetl_server::InternalToken::read_by(move || Some(token.clone()));
        self
    }

    /// Uses another store than the default one. [`TestApp::store`] then stays empty.
    #[must_use]
    pub fn over(mut self, store: Arc<dyn Store>) -> Self {
        self.over = Some(store);
        self
    }

    /// Sets the key that encrypts credentials. Without a key there are no credentials.
    #[must_use]
    pub fn encryption_key(mut self, key: EncryptionKey) -> Self {
        self.encryption_key = Some(key);
        self
    }

    /// Denies secrets whose use cannot be recorded.
    #[must_use]
    pub fn audit_required(mut self) -> Self {
        self.audit_required = true;
        self
    }

    /// Sets the options of the HTTP server.
    #[must_use]
    pub fn options(mut self, options: noetl_server::Options) -> Self {
        self.options = options;
        self
    }

    /// Announces commands on a bus, and repeats lost announcements at this interval.
    #[must_use]
    pub fn announcing(mut self, bus: Arc<dyn CommandBus>, look_every: Duration) -> Self {
        self.bus = Some((bus, look_every));
        self
    }

    /// Sets the quotas of tenants.
    #[must_use]
    pub fn quotas(mut self, quotas: QuotaSettings) -> Self {
        self.quotas = quotas;
        self
    }

    /// Sets the exporter of spans.
    #[must_use]
    pub fn traces(mut self, traces: Traces) -> Self {
        self.traces = traces;
        self
    }

    pub async fn start(self) -> TestApp {
        let Self {
            slots,
            tools,
            clock,
            store,
            outbox,
            over,
            encryption_key,
            audit_required,
            options,
            bus,
            traces,
            quotas,
        } = self;
        let store = match store {
            Some(store) => store,
            None => Arc::new(FaultyStore::new(Backend::open(outbox).await)),
        };
        let settings = noetl_control::Options {
            slots,
            encryption_key,
            audit_required,
            traces,
            quotas,
            ..noetl_control::Options::default()
        };
        let shared = over.unwrap_or_else(|| store.clone());
        let control =
            ControlPlane::open(settings, shared.clone(), clock).await.expect("the store responds");
        let worker = tokio::spawn(Worker::new(control.journal.local.clone(), tools).run(GRACE));
        let control = Arc::new(control);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::new(control.clone(), options);
        let server = tokio::spawn(async move {
            let stop = async {
                // Dropping the sender stops the server too.
                let _ = stopped.await;
            };
            noetl_server::serve(listener, app, None, stop).await.expect("the listener stays open");
        });
        let base = format!("http://{address}");
        let client = Client::new(&base).expect("an address");
        let announcing = bus.map(|(bus, look_every)| {
            let options = AnnouncerOptions { look_every, ..AnnouncerOptions::new(&base) };
            AnnouncerHandle::start(&options, vec![shared.clone()], bus, &control.journal)
        });
        TestApp { client, base, store, shared, control, stop, server, worker, announcing }
    }
}

/// A running app. Close it, so that a failure in its tasks fails the test.
pub struct TestApp {
    pub client: Client,
    /// Base URL, such as `http://127.0.0.1:40123`.
    pub base: String,
    /// Store of the app, unless [`TestAppBuilder::over`] replaced it.
    pub store: Arc<FaultyStore>,
    shared: Arc<dyn Store>,
    /// Control plane behind the HTTP server.
    pub control: Arc<ControlPlane>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
    worker: JoinHandle<()>,
    announcing: Option<AnnouncerHandle>,
}

impl TestApp {
    /// Returns the default settings: four slots, an empty store, and the system clock.
    pub fn builder() -> TestAppBuilder {
        TestAppBuilder {
            slots: 4,
            tools: ToolRegistry::default().with(Echo).with(Noop),
            clock: Arc::new(SystemClock),
            store: None,
            outbox: OutboxOptions::default(),
            over: None,
            encryption_key: None,
            audit_required: false,
            options: noetl_server::Options::default(),
            bus: None,
            traces: Traces::default(),
            quotas: QuotaSettings::default(),
        }
    }

    /// Starts an app with this many slots.
    pub async fn start(slots: usize) -> Self {
        Self::builder().slots(slots).start().await
    }

    /// Returns the stored rows of an event log.
    pub async fn read_log(&self, id: ExecutionId) -> Vec<EventRow> {
        let log = self.shared.read(id, Seq::START, 100_000).await.expect("the store responds");
        log.iter().map(EventRow::from).collect()
    }

    /// Stops accepting requests, responds to those in flight, commits submitted inputs, and stops.
    ///
    /// # Panics
    ///
    /// Panics if a task of the app panicked or keeps the control plane alive.
    pub async fn close(self) {
        let Self { client, control, stop, server, worker, announcing, .. } = self;
        if let Some(announcing) = announcing {
            announcing.close().await;
        }
        // Idle connections would keep the server open.
        drop(client);
        let _ = stop.send(());
        server.await.expect("the server does not panic");
        control.close().await;
        worker.await.expect("the worker does not panic");
        wait_for_release(control).await;
    }
}

/// Waits until the control plane is dropped. A connection drops its reference shortly after it closes,
/// so the last one may still have it; a leaked reference fails the test.
async fn wait_for_release(control: Arc<ControlPlane>) {
    let weak = Arc::downgrade(&control);
    drop(control);
    for _ in 0..RELEASE_CHECKS {
        if weak.strong_count() == 0 {
            return;
        }
        tokio::time::sleep(RELEASE_INTERVAL).await;
    }
    panic!("a task still references the control plane");
}

/// Starts a local worker with the tools [`Echo`] and [`Noop`]. It ends when the control plane drains.
pub fn worker(control: &ControlPlane) -> JoinHandle<()> {
    let tools = ToolRegistry::default().with(Noop).with(Echo);
    tokio::spawn(Worker::new(control.journal.local.clone(), tools).run(GRACE))
}
