//! Steps that run in worker processes: by leases over HTTP, and woken by announcements on NATS.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use noetl_api::Client;
use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use noetl_bus::{EventStream, StreamMessage, StreamSettings};
use noetl_bus_nats::{Address, NatsStream};
use noetl_model::{ExecutionId, Fact, Map, Seq};
use noetl_store::Store;

use crate::chain::{as_f64, chain_text};
use crate::nats::Server;
use crate::processes::Process;
use crate::raw;
use crate::report::{self, line};
use crate::stage::{Medium, Place};
use crate::store;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Taken by calls that wait.
const HTTP: &str = "steps_http";

/// Woken by announcements.
const NATS: &str = "steps_nats";

/// What the ways are called.
pub(crate) const WAYS: [&str; 2] = [HTTP, NATS];

/// Worker processes at a time.
const WORKERS: [usize; 2] = [1, 4];

/// Executions at a time: few, to see how long a step takes, and many, to see how many fit.
const WIDTHS: [usize; 2] = [8, 64];

/// Steps that all workers together run at a time.
const SLOTS: usize = 64;

/// Bytes of a message that is published plainly, as many as an announcement has.
const MESSAGE_BYTES: usize = 260;

/// Messages that are published plainly, and at a time.
const MESSAGES: usize = 20_000;
const MESSAGES_AT_A_TIME: usize = 256;

/// What is measured.
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    /// Steps of each measurement.
    pub(crate) steps: usize,
}

/// The limits of the same run.
#[derive(Clone, Copy)]
struct Raw {
    rows: f64,
    messages: f64,
}

impl Plan {
    /// Measures these ways, each in a database of its own, and prints a line for each.
    pub(crate) async fn measure(
        &self,
        ways: &[&str],
        fresh: &mut impl FnMut() -> Outcome<Medium>,
    ) -> Outcome<()> {
        let (_, rows) = store::journal(&fresh()?, self.steps * 4).await?;
        let nats = Server::start()?;
        let limits = Raw { rows: rows.unwrap_or(0.0), messages: published(&nats.url).await? };
        for workers in WORKERS {
            for width in WIDTHS {
                for way in ways {
                    let url = (*way == NATS).then_some(nats.url.as_str());
                    let line = self.run(&fresh()?, way, url, workers, width, limits).await?;
                    report::print(&line);
                }
            }
        }
        Ok(())
    }

    async fn run(
        &self,
        medium: &Medium,
        name: &str,
        nats: Option<&str>,
        workers: usize,
        width: usize,
        limits: Raw,
    ) -> Outcome<String> {
        let Medium::Postgres(database) = medium else { return Err("only on Postgres".into()) };
        let (server, client) = Process::server(&self.program, database, nats)?;
        let slots = SLOTS / workers;
        let workers: Vec<Process> = (0..workers)
            .map(|_| Process::worker(&self.program, &client, slots, nats))
            .collect::<Outcome<_>>()?;
        let length = (self.steps / width).max(2);
        let text = chain_text(length).replace("{name: bench}", "{name: bench, path: bench/steps}");
        client.register(&RegisterRequest::playbook(&text), false).await?;
        // What is started first has begun to work before the clock runs.
        ended(&client, &[started(&client).await?]).await?;
        let cpu = || workers.iter().chain([&server]).map(Process::cpu_seconds).sum::<f64>();
        let bytes = raw::postgres_bytes(database)?;
        let (before, clock) = (cpu(), Instant::now());
        let mut ids = Vec::with_capacity(width);
        for _ in 0..width {
            ids.push(started(&client).await?);
        }
        ended(&client, &ids).await?;
        let (seconds, cpu) = (clock.elapsed().as_secs_f64(), cpu() - before);
        let bytes = raw::postgres_bytes(database)? - bytes;
        let place = Place::open(medium).await?;
        let gaps = gaps(&*place.store, &ids, length).await?;
        drop(place.close().await);
        let steps = as_f64(width * length);
        let at = |percent: usize| {
            let place = (gaps.len() * percent / 100).min(gaps.len().saturating_sub(1));
            gaps.get(place).map_or(0.0, |gap| *gap as f64)
        };
        let fields = [
            ("workers", as_f64(workers.len())),
            ("concurrency", as_f64(width)),
            ("steps", steps),
            ("steps_per_second", steps / seconds),
            ("p50_us", at(50)),
            ("p99_us", at(99)),
            ("cpu_ms_per_1000_steps", cpu * 1e6 / steps),
            ("bytes_per_step", bytes / steps),
            ("raw_rows_per_second", limits.rows),
            ("raw_messages_per_second", limits.messages),
        ];
        Ok(line(name, medium.name(), &fields))
    }
}

async fn started(client: &Client) -> Outcome<ExecutionId> {
    let reply = client.execute(&ExecuteRequest::path("bench/steps", Map::new())).await?;
    Ok(ExecutionId::from(reply.execution_id))
}

/// Waits until all have ended well. Asked seldom: the asking costs what is measured.
async fn ended(client: &Client, ids: &[ExecutionId]) -> Outcome<()> {
    for id in ids {
        loop {
            let status = client.status(*id).await?.status;
            match status.as_str() {
                "COMPLETED" => break,
                "RUNNING" => tokio::time::sleep(Duration::from_millis(20)).await,
                other => return Err(format!("execution {id} is {other}").into()),
            }
        }
    }
    Ok(())
}

/// Times from the end of one step to the end of the next in the same execution, sorted, in microseconds:
/// the answer on its way to the worker, the step itself, which does nothing, and its report on the way
/// back. All steps have to be in the logs, each taken once.
async fn gaps(store: &dyn Store, ids: &[ExecutionId], length: usize) -> Outcome<Vec<i64>> {
    let mut gaps = Vec::new();
    for id in ids {
        let (mut after, mut last, mut steps) = (Seq::START, None, 0);
        loop {
            let events = store.read(*id, after, 10_000).await?;
            let Some(newest) = events.last() else { break };
            after = newest.seq;
            for event in events {
                match event.fact {
                    Fact::CommandCompleted { .. } => {
                        let now = event.at.as_micros();
                        gaps.extend(last.replace(now).map(|last| now - last));
                    }
                    Fact::StepExited { .. } => steps += 1,
                    _ => {}
                }
            }
        }
        if steps != length {
            return Err(format!("{steps} of {length} steps of {id} ended").into());
        }
    }
    gaps.sort_unstable();
    Ok(gaps)
}

/// Messages per second that the server takes when nobody has anything else to do.
async fn published(url: &str) -> Outcome<f64> {
    let bus = NatsStream::open(Address::parse(url)?);
    tokio::time::timeout(Duration::from_secs(10), bus.connected()).await?;
    bus.ensure(&StreamSettings {
        name: "raw".to_owned(),
        subjects: vec!["raw.>".to_owned()],
        duplicate_window: Duration::from_secs(120),
        age_max: Duration::from_secs(3600),
        consumers: Vec::new(),
    })
    .await?;
    let started = Instant::now();
    for from in (0..MESSAGES).step_by(MESSAGES_AT_A_TIME) {
        let message = |number: usize| StreamMessage {
            subject: "raw.x".to_owned(),
            id: number.to_string(),
            payload: vec![b'x'; MESSAGE_BYTES],
        };
        let batch = (from..(from + MESSAGES_AT_A_TIME).min(MESSAGES)).map(message).collect();
        for answer in bus.publish(batch).await {
            answer?;
        }
    }
    Ok(as_f64(MESSAGES) / started.elapsed().as_secs_f64())
}
