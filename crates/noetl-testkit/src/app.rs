//! A control plane with its worker and its HTTP edge, on a free port of this machine.

use std::sync::Arc;
use std::time::Duration;

use noetl_api::Client;
use noetl_bus::CommandBus;
use noetl_control::{Announcing, AnnouncingOptions, Control, EncryptionKey, QuotaSettings, Traces};
use noetl_model::row::EventRow;
use noetl_model::{Clock, ExecutionId, Seq};
use noetl_server::App;
use noetl_store::{OutboxOptions, Store, SystemClock};
use noetl_tools::Registry;
use noetl_worker::Worker;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::place::place;
use crate::store::FrailStore;
use crate::tools::{Echo, Noop};

/// How long what still runs may take to end when an app closes. Tests wait for what they need.
const GRACE: Duration = Duration::from_millis(200);

/// How often, and how long apart, it is looked whether a closed app was let go of: ten seconds in all,
/// far more than the end of a task takes on a busy machine.
const RELEASE_LOOKS: u32 = 1000;
const RELEASE_LOOK: Duration = Duration::from_millis(10);

/// What an app is made of.
pub struct TestAppBuilder {
    slots: usize,
    tools: Registry,
    clock: Arc<dyn Clock>,
    store: Option<Arc<FrailStore>>,
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
    /// How many commands the worker in the process runs at a time; 0 leaves them to others.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// The worker's tools.
    #[must_use]
    pub fn tools(mut self, tools: Registry) -> Self {
        self.tools = tools;
        self
    }

    /// The control plane's clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The store of an earlier app, to go on with what it left.
    #[must_use]
    pub fn store(mut self, store: Arc<FrailStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// A store with its outbox on.
    #[must_use]
    pub fn outbox(mut self) -> Self {
        self.outbox.is_on = true;
        self
    }

    /// The token of the internal routes.
    #[must_use]
    pub fn internal_token(mut self, token: &str) -> Self {
        let token = token.to_owned();
        self.options.internal_token =
            noetl_server::InternalToken::read_by(move || Some(token.clone()));
        self
    }

    /// Another store than one in memory; [`TestApp::store`] is then of no use.
    #[must_use]
    pub fn over(mut self, store: Arc<dyn Store>) -> Self {
        self.over = Some(store);
        self
    }

    /// What credentials are encrypted with; without it there are none.
    #[must_use]
    pub fn encryption_key(mut self, key: EncryptionKey) -> Self {
        self.encryption_key = Some(key);
        self
    }

    /// Gives no secret whose use cannot be recorded.
    #[must_use]
    pub fn audit_required(mut self) -> Self {
        self.audit_required = true;
        self
    }

    /// Settings of the HTTP edge.
    #[must_use]
    pub fn options(mut self, options: noetl_server::Options) -> Self {
        self.options = options;
        self
    }

    /// Announces commands on a bus, and looks this often for what was lost.
    #[must_use]
    pub fn announcing(mut self, bus: Arc<dyn CommandBus>, look_every: Duration) -> Self {
        self.bus = Some((bus, look_every));
        self
    }

    /// How much each tenant may take up.
    #[must_use]
    pub fn quotas(mut self, quotas: QuotaSettings) -> Self {
        self.quotas = quotas;
        self
    }

    /// Where spans go.
    #[must_use]
    pub fn traces(mut self, traces: Traces) -> Self {
        self.traces = traces;
        self
    }

    /// Starts it.
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
            None => Arc::new(FrailStore::at(place(outbox).await)),
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
            Control::open(settings, shared.clone(), clock).await.expect("a store that answers");
        let worker = tokio::spawn(Worker::new(control.local.clone(), tools).run(GRACE));
        let control = Arc::new(control);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::new(control.clone(), options);
        let server = tokio::spawn(async move {
            let stop = async {
                // Dropping the sender is as good a sign as using it.
                let _ = stopped.await;
            };
            noetl_server::serve(listener, app, None, stop).await.expect("a listener that stays");
        });
        let base = format!("http://{address}");
        let client = Client::new(&base).expect("an address");
        let announcing = bus.map(|(bus, look_every)| {
            let options = AnnouncingOptions { look_every, ..AnnouncingOptions::new(&base) };
            Announcing::start(&options, vec![shared.clone()], bus, &control)
        });
        TestApp { client, base, store, shared, control, stop, server, worker, announcing }
    }
}

/// A running app. Close it, so that a failure in its tasks fails the test.
pub struct TestApp {
    /// A client of it.
    pub client: Client,
    /// Its address, as `http://127.0.0.1:40123`.
    pub base: String,
    /// Its store, unless it is over another.
    pub store: Arc<FrailStore>,
    shared: Arc<dyn Store>,
    /// The control plane behind the edge.
    pub control: Arc<Control>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
    worker: JoinHandle<()>,
    announcing: Option<Announcing>,
}

impl TestApp {
    /// An app to be adjusted and started: four slots, an empty store, the machine's clock.
    pub fn builder() -> TestAppBuilder {
        TestAppBuilder {
            slots: 4,
            tools: Registry::default().with(Echo).with(Noop),
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

    /// Starts an app with so many slots.
    pub async fn start(slots: usize) -> Self {
        Self::builder().slots(slots).start().await
    }

    /// The rows of a log, as its store has them.
    pub async fn read_log(&self, id: ExecutionId) -> Vec<EventRow> {
        let log = self.shared.read(id, Seq::START, 100_000).await.expect("a store that answers");
        log.iter().map(EventRow::from).collect()
    }

    /// Stops taking requests, answers those under way, commits what was submitted, and stops.
    pub async fn close(self) {
        let Self { client, control, stop, server, worker, announcing, .. } = self;
        if let Some(announcing) = announcing {
            announcing.close().await;
        }
        // Connections kept for later would hold the server open.
        drop(client);
        let _ = stop.send(());
        server.await.expect("the server does not panic");
        control.close().await;
        worker.await.expect("the worker does not panic");
        released(control).await;
    }
}

/// Waits until nobody holds the control plane any more. A connection says that it is over and lets go
/// of what it holds a little later, so the last of them may still have it; whoever keeps it for
/// good is found out.
async fn released(control: Arc<Control>) {
    let held = Arc::downgrade(&control);
    drop(control);
    for _ in 0..RELEASE_LOOKS {
        if held.strong_count() == 0 {
            return;
        }
        tokio::time::sleep(RELEASE_LOOK).await;
    }
    panic!("something still holds the control plane");
}

/// A worker with harmless tools for a control plane; it ends when that drains.
pub fn worker(control: &Control) -> JoinHandle<()> {
    let tools = Registry::default().with(Noop).with(Echo);
    tokio::spawn(Worker::new(control.local.clone(), tools).run(GRACE))
}
