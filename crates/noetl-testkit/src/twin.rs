//! A twin of the worker published as 5.52: the same calls in the same order with the same JSON, and
//! the same words to the bus. It runs no code of ours that the real one would not run either.
//!
//! What the real one does at the end of its process is an `Err` of [`Twin::ended`] here; a crash is
//! [`Twin::kill`].

mod control_plane;
mod perform;
mod python;
mod render;
mod sequence;
mod tools;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, AckKind};
use futures::StreamExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use self::control_plane::{Claim, ControlPlane};

pub use self::render::render;

/// What the environment of the real one would say.
#[derive(Debug, Clone)]
pub struct TwinOptions {
    /// `WORKER_ID`.
    pub worker_id: String,
    /// `NOETL_SERVER_URL`.
    pub server_url: String,
    /// `NATS_URL`.
    pub nats_url: String,
    /// `NATS_CONSUMER`.
    pub consumer: String,
    /// `NATS_FILTER_SUBJECT`.
    pub filter: String,
    /// `WORKER_MAX_CONCURRENT`.
    pub concurrent: usize,
    /// What a tool waits for before it runs; nothing when `None`.
    pub gate: Option<Arc<Semaphore>>,
}

impl TwinOptions {
    /// A worker of the default pool with the real one's defaults.
    pub fn new(worker_id: &str, server_url: &str, nats_url: &str) -> Self {
        Self {
            worker_id: worker_id.to_owned(),
            server_url: server_url.to_owned(),
            nats_url: nats_url.to_owned(),
            consumer: "worker-pool".to_owned(),
            filter: "noetl.commands".to_owned(),
            concurrent: 4,
            gate: None,
        }
    }
}

/// What a twin has done so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Announcements it was given.
    pub announcements: AtomicUsize,
    /// Claims by the status they were answered with.
    pub claims: Mutex<Vec<u16>>,
    /// Tools it began to run.
    pub began: AtomicUsize,
}

impl Seen {
    /// The statuses claims were answered with.
    pub fn claims(&self) -> Vec<u16> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A worker that runs.
pub struct Twin {
    task: JoinHandle<Result<(), String>>,
    /// What it has done.
    pub seen: Arc<Seen>,
}

impl Twin {
    /// Starts one.
    pub fn start(options: TwinOptions) -> Self {
        let seen = Arc::new(Seen::default());
        let task = tokio::spawn(run(options, seen.clone()));
        Self { task, seen }
    }

    /// Why its process ended.
    pub async fn ended(self) -> Result<(), String> {
        self.task.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Whether its process is over.
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it in the middle of whatever it does. It says nothing to anybody, as the real one does
    /// when it is told to stop.
    pub async fn kill(self) {
        self.task.abort();
        // It is over either way.
        let _ = self.task.await;
    }
}

/// What it is told by the bus.
#[derive(Debug, Clone, Deserialize)]
struct Notification {
    execution_id: i64,
    event_id: i64,
    #[serde(rename = "command_id")]
    _command_id: TextOrNumber,
    #[serde(rename = "step")]
    _step: String,
    server_url: String,
    #[serde(default)]
    execution_pool: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum TextOrNumber {
    #[expect(dead_code, reason = "it is only checked to be there")]
    Text(String),
    #[expect(dead_code, reason = "it is only checked to be there")]
    Number(i64),
}

async fn run(options: TwinOptions, seen: Arc<Seen>) -> Result<(), String> {
    let client = async_nats::connect(&options.nats_url).await.map_err(told)?;
    let context = jetstream::new(client);
    let stream = match context.get_stream("noetl_commands").await {
        Ok(stream) => stream,
        Err(_) => {
            let subjects = vec!["noetl.commands".to_owned(), "noetl.commands.>".to_owned()];
            let config =
                Config { name: "noetl_commands".to_owned(), subjects, ..Config::default() };
            context.create_stream(config).await.map_err(told)?
        }
    };
    let server = ControlPlane::new(&options);
    server.register().await?;
    let mut tasks = JoinSet::new();
    let beating = server.clone();
    tasks.spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(15)).await;
            beating.heartbeat().await;
        }
    });
    let pulled = pull_all(&options, &stream, &server, &seen, &mut tasks).await;
    server.deregister().await;
    pulled
}

async fn pull_all(
    options: &TwinOptions,
    stream: &Stream,
    server: &ControlPlane,
    seen: &Arc<Seen>,
    tasks: &mut JoinSet<()>,
) -> Result<(), String> {
    let permits = Arc::new(Semaphore::new(options.concurrent));
    let config = pull::Config {
        durable_name: Some(options.consumer.clone()),
        filter_subject: options.filter.clone(),
        ..pull::Config::default()
    };
    let mut consumer: Option<PullConsumer> = None;
    loop {
        let permit = permits.clone().acquire_owned().await.map_err(told)?;
        while tasks.try_join_next().is_some() {}
        let reader = match &consumer {
            Some(reader) => reader.clone(),
            None => {
                let made = stream.get_or_create_consumer(&options.consumer, config.clone());
                consumer.insert(made.await.map_err(told)?).clone()
            }
        };
        let fetched = reader.fetch().max_messages(1).expires(Duration::from_secs(2)).messages();
        let mut fetched = fetched.await.map_err(told)?;
        let Some(message) = fetched.next().await else { continue };
        let message = message.map_err(|error| error.to_string())?;
        seen.announcements.fetch_add(1, Ordering::Relaxed);
        let said: Notification = serde_json::from_slice(&message.payload).map_err(told)?;
        if is_elsewhere(&options.filter, said.execution_pool.as_deref()) {
            message.ack().await.map_err(|error| error.to_string())?;
            continue;
        }
        let server = server.at(&said.server_url);
        let (status, claim) = server.claim(said.event_id).await?;
        seen.claims.lock().unwrap_or_else(PoisonError::into_inner).push(status);
        match claim {
            Claim::Held => message.ack().await.map_err(|error| error.to_string())?,
            Claim::Failed => {
                message.ack_with(AckKind::Nak(None)).await.map_err(|error| error.to_string())?;
            }
            Claim::Ours(command) => {
                message.ack().await.map_err(|error| error.to_string())?;
                if command.execution_id != said.execution_id {
                    return Err("the claim answered with another execution".to_owned());
                }
                let (gate, seen) = (options.gate.clone(), seen.clone());
                tasks.spawn(async move {
                    let _permit = permit;
                    // What it cannot report it gives up without a word.
                    let _ = perform::perform(&server, *command, gate, &seen).await;
                });
            }
        }
    }
}

/// Whether an announcement is for another pool than the one its filter names.
fn is_elsewhere(filter: &str, pool: Option<&str>) -> bool {
    let mut tokens = filter.split('.').skip_while(|token| *token != "commands").skip(1);
    let own = tokens.next().filter(|token| !matches!(*token, ">" | "*"));
    matches!((own, pool), (Some(own), Some(pool)) if own != pool)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The environment of a registration.
fn registration(worker: &str, key: &str) -> Value {
    json!({
        "name": worker, "component_type": "worker_pool",
        "runtime": {"kind": "rust", "worker_public_key": key},
        "status": "ready", "hostname": "twin", "labels": {"pool_name": "default"},
    })
}
