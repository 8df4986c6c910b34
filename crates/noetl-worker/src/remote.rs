//! Worker in a separate process.
//!
//! The worker connects to a server, which pushes commands. It runs them with its own tools, and
//! reports their completions. If the server has no such connections, the worker leases commands over
//! HTTP with long polls. With a bus on which commands are announced, it polls when one is announced.
//! A periodic heartbeat lists all leased commands: the server renews the leases and returns the
//! commands that were lost; it pushes those to cancel. While the server is unavailable, the worker
//! continues its commands and reports them once the server responds. It stops a command that was
//! reassigned meanwhile and doesn't report it. The server seals credentials with a key of this
//! process.

mod announced;
mod content;
mod heartbeat;
mod lease;
mod leases;
mod lend;
mod line;
mod link;
mod metrics;
mod placeholders;
mod reporter;
mod services;
mod step_logs;

use std::sync::Arc;
use std::time::Duration;

use noetl_api::workers::{RegisterRequest, RuntimeNamed};
use noetl_api::{Client, ClientError, work};
use noetl_bus::CommandConsumer;
use noetl_model::{Clock, DEFAULT_POOL, Map, Value};

use noetl_tools::ToolRegistry;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub use self::metrics::WorkerMetrics;

use self::announced::AnnouncedSource;
use self::lease::LeasePoller;
use self::leases::HeldLeases;
use self::lend::Lender;
use self::line::{Line, LineState, LineTask};
use self::link::{RETRY, ServerLink, chain};
use self::reporter::Reporter;
use self::services::RemoteValues;
use self::step_logs::LogShipper;
use crate::executor::CommandExecutor;
use crate::source;

/// Timeout of the deregistration request.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// Runtime kind that the worker registers as.
const KIND: &str = "worker_pool";

/// Configuration of a remote worker.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Name, unique among all processes. If two processes share one, the server treats the later as
    /// a restart of the earlier and reissues the earlier one's commands.
    pub name: String,
    /// Pool whose commands the worker claims. `None` selects the default pool.
    pub pool: Option<String>,
    /// Maximum number of commands in flight.
    pub slots: usize,
    /// Labels shown in the list of workers.
    pub labels: Map,
    /// URL of the worker's health endpoint, if it has one.
    pub uri: Option<String>,
    /// Time that running commands have to finish on shutdown.
    pub grace: Duration,
    /// Channel over which the worker gets commands and reports their completions.
    pub transport: Transport,
}

/// Channel between a worker and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Connection over which the server pushes commands, or long polls if the server has none.
    #[default]
    Connection,
    /// Long polls and HTTP requests.
    LongPoll,
}

/// Outcome of a worker's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainOutcome {
    /// The worker reported every command it ran.
    Whole,
    /// The worker stopped some commands and released their leases.
    GaveBack,
}

/// A worker for a server in another process.
pub struct RemoteWorker {
    client: Client,
    options: RemoteOptions,
    tools: ToolRegistry,
    clock: Arc<dyn Clock>,
    counters: Arc<WorkerMetrics>,
    bus: Option<Arc<dyn CommandConsumer>>,
}

impl RemoteWorker {
    /// Creates a worker for the server of this client, with these tools.
    pub fn new(
        client: Client,
        options: RemoteOptions,
        tools: ToolRegistry,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { client, options, tools, clock, counters: Arc::default(), bus: None }
    }

    /// Adds a bus that announces commands. The worker then leases them with requests, so that the
    /// announcements are acked.
    #[must_use]
    pub fn with_bus(mut self, bus: Arc<dyn CommandConsumer>) -> Self {
        self.counters.set_bus();
        self.bus = Some(bus);
        self
    }

    pub fn counters(&self) -> Arc<WorkerMetrics> {
        self.counters.clone()
    }

    /// Registers the worker and runs commands until `draining` is cancelled. Then claims no more,
    /// waits up to the grace period for running commands, releases the rest, and deregisters.
    ///
    /// Calls `registered` once the server has registered the worker. Waits for an unavailable
    /// server, and returns an error if the server rejects the registration.
    pub async fn run(
        self,
        draining: CancellationToken,
        registered: impl FnOnce(),
    ) -> Result<DrainOutcome, ClientError> {
        let Self { client, options, tools, clock, counters, bus } = self;
        let link = Arc::new(ServerLink::new(client, options.name.clone(), counters));
        let registration = Arc::new(registration(&options, &tools, &link));
        if !register(&link, &registration, &draining).await? {
            return Ok(DrainOutcome::Whole);
        }
        registered();
        let (leases, stop) = (HeldLeases::default(), CancellationToken::new());
        let connects = options.transport == Transport::Connection && bus.is_none();
        let state = if connects { LineState::Connecting } else { LineState::Unsupported };
        let (line, ends) = Line::new(state, options.slots);
        let beating = {
            let (link, line) = (link.clone(), line.clone());
            let (leases, stop) = (leases.clone(), stop.clone());
            tokio::spawn(async move { heartbeat::run(&link, &line, &leases, stop).await })
        };
        let lines = LogShipper::start(&link, line.clone(), clock.clone(), &stop);
        let reporter = Reporter::start(&link, options.pool.as_ref(), line.clone(), &stop);
        let lender =
            Lender { link: link.clone(), leases: leases.clone(), reporter: reporter.clone() };
        let talking = connects.then(|| {
            let task = LineTask {
                link: link.clone(),
                lender: lender.clone(),
                ends,
                pool: options.pool.clone(),
                kinds: tools.kinds().into_iter().map(str::to_owned).collect(),
                slots: options.slots,
                draining: draining.clone(),
            };
            tokio::spawn(task.run(stop.clone()))
        });
        let lease = LeasePoller {
            link: link.clone(),
            leases,
            reporter,
            lender,
            line,
            lines: lines.clone(),
            pool: options.pool,
            registration,
            draining,
        };
        let performer = CommandExecutor::new(tools, Arc::new(RemoteValues(link.clone())), clock);
        let (slots, grace) = (options.slots, options.grace);
        let is_whole = match bus {
            Some(bus) => {
                let source = Arc::new(AnnouncedSource::new(lease, bus));
                source::run(&source, &performer, slots, grace).await
            }
            None => source::run(&Arc::new(lease), &performer, slots, grace).await,
        };
        lines.flush().await;
        stop.cancel();
        // The tasks stop at once, even in the middle of a wait.
        let _ = beating.await;
        if let Some(talking) = talking {
            let _ = talking.await;
        }
        say_goodbye(&link).await;
        Ok(if is_whole { DrainOutcome::Whole } else { DrainOutcome::GaveBack })
    }
}

/// Registers this worker, retrying transient errors. Returns `false` if `draining` is cancelled
/// first.
async fn register(
    link: &ServerLink,
    registration: &RegisterRequest,
    draining: &CancellationToken,
) -> Result<bool, ClientError> {
    let mut delays = RETRY.delays();
    loop {
        let asked = tokio::select! {
            asked = link.request(work::register(registration)) => asked,
            () = draining.cancelled() => return Ok(false),
        };
        match asked {
            Ok(_) => return Ok(true),
            Err(error) if !error.is_passing() => return Err(error),
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(delays.next_delay()) => {}
            () = draining.cancelled() => return Ok(false),
        }
    }
}

/// Deregisters the worker and releases its remaining leases. If the request fails, the leases
/// expire.
async fn say_goodbye(link: &ServerLink) {
    let named = RuntimeNamed { name: link.name.clone(), kind: KIND.to_owned(), release: true };
    let response = tokio::time::timeout(GOODBYE_MAX, link.request(work::deregister(&named))).await;
    match response {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => warn!(error = chain(&error), "failed to deregister worker"),
        Err(_) => warn!("worker deregistration timed out"),
    }
}

fn registration(
    options: &RemoteOptions,
    tools: &ToolRegistry,
    link: &ServerLink,
) -> RegisterRequest {
    let mut labels = options.labels.clone();
    let pool = options.pool.as_deref().unwrap_or(DEFAULT_POOL);
    labels.insert("pool_name".to_owned(), pool.into());
    RegisterRequest {
        name: options.name.clone(),
        kind: KIND.to_owned(),
        uri: options.uri.clone(),
        status: "ready".to_owned(),
        labels: Some(Value::Object(labels)),
        capabilities: Some(serde_json::json!({ "tools": tools.kinds() })),
        capacity: i32::try_from(options.slots).ok(),
        runtime: Some(serde_json::json!({
            "kind": "rust",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "worker_public_key": link.key.public(),
            "isolation": {
                "level": tools.isolation().number(),
                "name": tools.isolation().name(),
                "does_not_stop": tools.isolation().does_not_stop(),
            },
        })),
    }
}
