//! Pulls announcements, claims their commands, and runs them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, AckKind};
use futures::StreamExt;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use super::control_plane::{Claim, ControlPlane};
use super::{error_text, perform};

/// Settings that the released worker reads from its environment.
#[derive(Debug, Clone)]
pub struct PublishedWorkerOptions {
    /// Name of the worker, from `WORKER_ID`.
    pub worker_id: String,
    /// URL of the control plane, from `NOETL_SERVER_URL`.
    pub server_url: String,
    /// URL of the NATS server, from `NATS_URL`.
    pub nats_url: String,
    /// Durable consumer of announcements, from `NATS_CONSUMER`.
    pub consumer: String,
    /// Subject filter of that consumer, from `NATS_FILTER_SUBJECT`.
    pub filter: String,
    /// Commands run at a time, from `WORKER_MAX_CONCURRENT`.
    pub concurrent: usize,
    /// Permits that tools acquire before they run. `None` runs them at once.
    pub gate: Option<Arc<Semaphore>>,
}

impl PublishedWorkerOptions {
    /// Returns the defaults of the released worker, for the default pool.
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

/// Counters of a running worker.
#[derive(Debug, Default)]
pub struct WorkerStats {
    pub announcements: AtomicUsize,
    /// HTTP status of each claim, in order.
    pub claims: Mutex<Vec<u16>>,
    pub started: AtomicUsize,
}

impl WorkerStats {
    /// Returns the HTTP status of each claim, in order.
    pub fn claims(&self) -> Vec<u16> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub struct PublishedWorker {
    task: JoinHandle<Result<(), String>>,
    pub stats: Arc<WorkerStats>,
}

impl PublishedWorker {
    pub fn start(options: PublishedWorkerOptions) -> Self {
        let stats = Arc::new(WorkerStats::default());
        let task = tokio::spawn(run(options, stats.clone()));
        Self { task, stats }
    }

    /// Waits until the worker ends, and returns the error that ended it.
    pub async fn ended(self) -> Result<(), String> {
        self.task.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Returns `true` if the worker has ended.
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Kills the worker in the middle of its work. Like the released worker on a signal, it sends
    /// nothing more.
    pub async fn kill(self) {
        self.task.abort();
        // The task was aborted or had ended.
        let _ = self.task.await;
    }
}

/// An announcement on the bus.
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
    #[expect(dead_code, reason = "only its presence is checked")]
    Text(String),
    #[expect(dead_code, reason = "only its presence is checked")]
    Number(i64),
}

async fn run(options: PublishedWorkerOptions, stats: Arc<WorkerStats>) -> Result<(), String> {
    let client = async_nats::connect(&options.nats_url).await.map_err(error_text)?;
    let context = jetstream::new(client);
    let stream = match context.get_stream("noetl_commands").await {
        Ok(stream) => stream,
        Err(_) => {
            let subjects = vec!["noetl.commands".to_owned(), "noetl.commands.>".to_owned()];
            let config =
                Config { name: "noetl_commands".to_owned(), subjects, ..Config::default() };
            context.create_stream(config).await.map_err(error_text)?
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
    let pulled = pull_all(&options, &stream, &server, &stats, &mut tasks).await;
    server.deregister().await;
    pulled
}

async fn pull_all(
    options: &PublishedWorkerOptions,
    stream: &Stream,
    server: &ControlPlane,
    stats: &Arc<WorkerStats>,
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
        let permit = permits.clone().acquire_owned().await.map_err(error_text)?;
        while tasks.try_join_next().is_some() {}
        let pull_consumer = match &consumer {
            Some(consumer) => consumer.clone(),
            None => {
                let created = stream.get_or_create_consumer(&options.consumer, config.clone());
                consumer.insert(created.await.map_err(error_text)?).clone()
            }
        };
        let fetched =
            pull_consumer.fetch().max_messages(1).expires(Duration::from_secs(2)).messages();
        let mut fetched = fetched.await.map_err(error_text)?;
        let Some(message) = fetched.next().await else { continue };
        let message = message.map_err(|error| error.to_string())?;
        stats.announcements.fetch_add(1, Ordering::Relaxed);
        let notification: Notification =
            serde_json::from_slice(&message.payload).map_err(error_text)?;
        if is_other_pool(&options.filter, notification.execution_pool.as_deref()) {
            message.ack().await.map_err(|error| error.to_string())?;
            continue;
        }
        let server = server.with_base(&notification.server_url);
        let (status, claim) = server.claim(notification.event_id).await?;
        stats.claims.lock().unwrap_or_else(PoisonError::into_inner).push(status);
        match claim {
            Claim::Denied => message.ack().await.map_err(|error| error.to_string())?,
            Claim::Failed => {
                message.ack_with(AckKind::Nak(None)).await.map_err(|error| error.to_string())?;
            }
            Claim::Granted(command) => {
                message.ack().await.map_err(|error| error.to_string())?;
                if command.execution_id != notification.execution_id {
                    return Err("the claim returned another execution".to_owned());
                }
                let (gate, stats) = (options.gate.clone(), stats.clone());
                tasks.spawn(async move {
                    let _permit = permit;
                    // The released worker drops a report that it cannot deliver.
                    let _ = perform::perform(&server, *command, gate, &stats).await;
                });
            }
        }
    }
}

/// Returns `true` if an announcement is for another pool than the one that the filter names.
fn is_other_pool(filter: &str, pool: Option<&str>) -> bool {
    let mut tokens = filter.split('.').skip_while(|token| *token != "commands").skip(1);
    let own = tokens.next().filter(|token| !matches!(*token, ">" | "*"));
    matches!((own, pool), (Some(own), Some(pool)) if own != pool)
}
