//! How fast committed rows get to the event stream, beside how fast the same server takes the same
//! payloads from whoever has nothing else to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_bus::{EventStream, StreamMessage, StreamSettings};
use noetl_bus_nats::{Address, NatsStream};
use noetl_journal::Metrics;
use noetl_model::Clock;
use noetl_publishing::{PublisherHandle, PublisherOptions};
use noetl_store::tail::Lane;
use noetl_store::{Store, SystemClock};
use tokio::sync::watch;

use crate::nats::Server;
use crate::report::line;
use crate::stage::{Medium, Place};
use crate::work;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Executions at a time, as the journal's measurement has them.
const WIDTH: usize = 64;

/// Messages at a time, as the tailer has them.
const BATCH: usize = 500;

/// Publishes the log of `steps` steps from its beginning, then follows as many while they are
/// committed.
pub(crate) async fn tailer(medium: &Medium, steps: usize) -> Outcome<String> {
    let server = Server::start()?;
    let bus: Arc<dyn EventStream> = Arc::new(NatsStream::open(Address::parse(&server.url)?));
    tokio::time::timeout(Duration::from_secs(10), bus.connected()).await?;
    let place = Place::open(medium).await?;
    work::commit(place.store.clone(), steps, WIDTH, 0..1).await?;
    let raw = raw(&*place.store, &*bus).await?;

    let metrics = Arc::new(Metrics::new());
    let options = PublisherOptions { backfill: true, ..PublisherOptions::default() };
    let (commits, committed) = watch::channel(());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let databases = vec![("database".to_owned(), place.store.clone() as _)];
    let started = Instant::now();
    let publishing = PublisherHandle::tail(&options, databases, &bus, &committed, &clock, &metrics);
    let rows = published_all(&*place.store, &metrics).await?;
    let rows_per_second = rows / started.elapsed().as_secs_f64();

    let (store, live) = (place.store.clone(), Instant::now());
    // Another caller's executions: those of the first are there already.
    work::commit(store, steps, WIDTH, 1..2).await?;
    commits.send_replace(());
    let written = live.elapsed();
    let all = published_all(&*place.store, &metrics).await?;
    let lag = live.elapsed() - written;
    publishing.close().await;
    drop(place.close().await);
    Ok(line(
        "tailer",
        medium.name(),
        &[
            ("rows", rows),
            ("rows_per_second", rows_per_second),
            ("raw_rows_per_second", raw),
            ("of_raw", rows_per_second / raw),
            ("live_rows_per_second", (all - rows) / live.elapsed().as_secs_f64()),
            ("lag_at_end_ms", lag.as_secs_f64() * 1000.0),
        ],
    ))
}

/// Waits until the stream has every row that is committed, and says how many that are.
async fn published_all(store: &dyn Store, metrics: &Metrics) -> Outcome<f64> {
    let mut rows = 0;
    for Lane { newest, .. } in store.lanes().await? {
        rows += u64::try_from(newest)?;
    }
    loop {
        let page = metrics.text();
        let counts = page.lines().filter(|l| l.starts_with("noetl_event_stream_published_total{"));
        let counted: u64 = counts.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        if counted >= rows {
            return Ok(f64::from(u32::try_from(rows)?));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Messages per second that the server takes when they are there already.
async fn raw(store: &dyn Store, bus: &dyn EventStream) -> Outcome<f64> {
    let settings = PublisherOptions::default().stream();
    let settings = StreamSettings {
        name: "raw".to_owned(),
        subjects: vec!["raw.>".to_owned()],
        consumers: Vec::new(),
        ..settings
    };
    bus.ensure(&settings).await?;
    let mut batches: Vec<Vec<StreamMessage>> = Vec::new();
    for Lane { number, newest } in store.lanes().await? {
        let mut after = 0;
        while after < newest && batches.len() < 200 {
            let rows = store.tail(number, after, BATCH).await?;
            let Some(last) = rows.last() else { break };
            after = last.position;
            let message = |row: &noetl_store::TailRow| -> Outcome<StreamMessage> {
                let id = format!("{number}-{}", row.position);
                Ok(StreamMessage {
                    subject: "raw.x".into(),
                    id,
                    payload: row.payload()?.into_bytes(),
                })
            };
            batches.push(rows.iter().map(message).collect::<Outcome<_>>()?);
        }
    }
    let count: usize = batches.iter().map(Vec::len).sum();
    let started = Instant::now();
    for batch in batches {
        for answer in bus.publish(batch).await {
            answer?;
        }
    }
    Ok(f64::from(u32::try_from(count)?) / started.elapsed().as_secs_f64())
}
