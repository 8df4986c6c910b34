//! The worker that is a process of its own and works for a server elsewhere.
//!
//! It takes commands over HTTP under leases, runs them on its own tools, and says how they ended.
//! It may be told of a bus on which commands are announced, so that it asks when there is something.
//! One call in a while names all it holds: that renews them, and tells which are not wanted any more.
//! While the server is away it goes on with what it has and says so as soon as it can; what was given
//! to somebody else meanwhile is stopped and not spoken of. Credentials come sealed for this process.

mod announced;
mod backoff;
mod content;
mod counters;
mod heartbeat;
mod held;
mod lease;
mod lines;
mod link;
mod placeholders;
mod reporter;
mod services;

use std::sync::Arc;
use std::time::Duration;

use noetl_api::workers::{RegisterRequest, RuntimeNamed};
use noetl_api::{Client, ClientError, work};
use noetl_bus::CommandReader;
use noetl_model::{Clock, DEFAULT_POOL, Map, Value};

use noetl_tools::Registry;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub use self::counters::Counters;

use self::announced::Announced;
use self::backoff::Backoff;
use self::held::Held;
use self::lease::HttpLease;
use self::lines::Lines;
use self::link::{Link, chain};
use self::reporter::Reporter;
use self::services::RemoteValues;
use crate::perform::Performer;
use crate::source;

/// How long a goodbye may take.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// What kind of runtime a worker is.
const KIND: &str = "worker_pool";

/// What a worker is told.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Its name. No two processes share one: the later of them is taken for the earlier one begun
    /// anew, and what that held is handed out again.
    pub name: String,
    /// The pool whose commands it takes; the default one when `None`.
    pub pool: Option<String>,
    /// How many commands it runs at a time.
    pub slots: usize,
    /// What it says of itself.
    pub labels: Map,
    /// Where it answers for its health, if it does.
    pub uri: Option<String>,
    /// How long running commands may take to end when it is told to stop.
    pub grace: Duration,
}

/// How a worker ended that was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Everything it ran was reported.
    Whole,
    /// Some of it was stopped and given back.
    GaveBack,
}

/// A worker of a server elsewhere.
pub struct RemoteWorker {
    client: Client,
    options: RemoteOptions,
    tools: Registry,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    bus: Option<Arc<dyn CommandReader>>,
}

impl RemoteWorker {
    /// A worker for the server of this client, with these tools.
    pub fn new(
        client: Client,
        options: RemoteOptions,
        tools: Registry,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { client, options, tools, clock, counters: Arc::default(), bus: None }
    }

    /// The same, that hears of commands on a bus too. It works without it as well, only later.
    #[must_use]
    pub fn with_bus(mut self, bus: Arc<dyn CommandReader>) -> Self {
        self.counters.set_bus();
        self.bus = Some(bus);
        self
    }

    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// Works until told to stop: then it takes no more, lets what runs end for its grace, gives the
    /// rest back and says goodbye. It registers first; `registered` is told when it has. A server that
    /// does not answer is waited for, one that refuses is an error.
    pub async fn run(
        self,
        draining: CancellationToken,
        registered: impl FnOnce(),
    ) -> Result<Drained, ClientError> {
        let Self { client, options, tools, clock, counters, bus } = self;
        let link = Arc::new(Link::new(client, options.name.clone(), counters));
        let registration = Arc::new(registration(&options, &tools, &link));
        if !register(&link, &registration, &draining).await? {
            return Ok(Drained::Whole);
        }
        registered();
        let (held, stop) = (Held::default(), CancellationToken::new());
        let beating = {
            let (link, held, stop) = (link.clone(), held.clone(), stop.clone());
            tokio::spawn(async move { heartbeat::run(&link, &held, stop).await })
        };
        let lines = Lines::start(&link, clock.clone(), &stop);
        let lease = HttpLease {
            link: link.clone(),
            held,
            reporter: Reporter::start(&link, options.pool.as_ref(), &stop),
            lines: lines.clone(),
            pool: options.pool,
            registration,
            draining,
        };
        let performer = Performer::new(tools, Arc::new(RemoteValues(link.clone())), clock);
        let (slots, grace) = (options.slots, options.grace);
        let is_whole = match bus {
            Some(bus) => {
                let source = Arc::new(Announced::new(lease, bus));
                source::run(&source, &performer, slots, grace).await
            }
            None => source::run(&Arc::new(lease), &performer, slots, grace).await,
        };
        lines.flush().await;
        stop.cancel();
        // It ends at once, whatever it waits for.
        let _ = beating.await;
        say_goodbye(&link).await;
        Ok(if is_whole { Drained::Whole } else { Drained::GaveBack })
    }
}

/// Says what this worker is. Whether that was heard before it was told to stop.
async fn register(
    link: &Link,
    registration: &RegisterRequest,
    draining: &CancellationToken,
) -> Result<bool, ClientError> {
    let mut backoff = Backoff::default();
    loop {
        let asked = tokio::select! {
            asked = link.ask(work::register(registration)) => asked,
            () = draining.cancelled() => return Ok(false),
        };
        match asked {
            Ok(_) => return Ok(true),
            Err(error) if !error.is_passing() => return Err(error),
            Err(_) => {}
        }
        tokio::select! {
            () = backoff.pause() => {}
            () = draining.cancelled() => return Ok(false),
        }
    }
}

/// Gives back what is left. Without an answer it comes back when its lease ends.
async fn say_goodbye(link: &Link) {
    let named = RuntimeNamed { name: link.name.clone(), kind: KIND.to_owned(), release: true };
    let said = tokio::time::timeout(GOODBYE_MAX, link.ask(work::deregister(&named))).await;
    match said {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => warn!(error = chain(&error), "the server did not hear the goodbye"),
        Err(_) => warn!("the server did not hear the goodbye in time"),
    }
}

fn registration(options: &RemoteOptions, tools: &Registry, link: &Link) -> RegisterRequest {
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
