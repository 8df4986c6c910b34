//! What a store costs by itself: the journal's commits, lists, and opening what is not in memory.

use std::sync::Arc;
use std::time::Instant;

use noetl_journal::StartRequest;
use noetl_model::{Map, Tenant, Value};
use noetl_remote::EventReport;
use noetl_store::{ExecutionFilter, Store};

use crate::raw;
use crate::report::line;
use crate::stage::{Medium, Place, Stage};
use crate::work;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Steps per batch of one caller: as many executions as the chains run at a time.
const WIDTH: usize = 64;

/// The journal's commits beside plain inserts of the same rows; returns the line and the raw limit.
pub(crate) async fn journal(medium: &Medium, steps: usize) -> Outcome<(String, Option<f64>)> {
    let place = Place::open(medium).await?;
    let rows = work::commit(place.store.clone(), steps, WIDTH, 0..raw::CALLERS).await?;
    drop(place.close().await);
    let raw = match medium {
        Medium::Memory => None,
        Medium::Sqlite => {
            let (directory, file) = Place::open(medium).await?.close().await;
            let file = file.ok_or("a store in a file")?;
            let raw = raw::sqlite_rows_per_second(&file, steps, WIDTH)?;
            drop(directory);
            Some(raw)
        }
        Medium::Postgres(url) | Medium::PostgresNats { database: url, .. } => {
            Some(raw::postgres_rows_per_second(url, steps, WIDTH).await?)
        }
    };
    let mut fields = vec![("rows_per_second", rows)];
    if let Some(raw) = raw {
        fields.extend([("raw_rows_per_second", raw), ("of_raw", rows / raw)]);
    }
    Ok((line("journal", medium.name(), &fields), raw))
}

/// The time to list 50 of 1 000 executions and of 1 000 000.
pub(crate) async fn list(medium: &Medium, databases: [Medium; 2]) -> Outcome<String> {
    let mut times = [0.0; 2];
    for (time, (count, medium)) in
        times.iter_mut().zip([1_000, 1_000_000].into_iter().zip(databases))
    {
        let mut place = Place::open(&medium).await?;
        if let Some(url) = medium.database() {
            raw::fill_postgres(url, count).await?;
        } else {
            let (directory, file) = place.close().await;
            raw::fill_sqlite(&file.ok_or("a store in a file")?, count)?;
            place = Place::again(directory.ok_or("a store in a directory")?)?;
        }
        *time = listed(&*place.store).await?;
        drop(place.close().await);
    }
    let fields =
        [("of_1000_us", times[0]), ("of_1000000_us", times[1]), ("ratio", times[1] / times[0])];
    Ok(line("list_50", medium.name(), &fields))
}

/// The median microseconds of a first page.
async fn listed(store: &dyn Store) -> Outcome<f64> {
    let filter = ExecutionFilter { limit: 50, ..ExecutionFilter::default() };
    let mut times = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        let rows = store.executions(&Tenant::default(), &filter).await?;
        if rows.len() != 50 {
            return Err(format!("{} rows of 50", rows.len()).into());
        }
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The time until an execution with `events` events that is not in memory takes an input.
pub(crate) async fn open(medium: &Medium, events: usize) -> Outcome<String> {
    let stage = Stage::open(medium, 1).await?;
    let tenant = Tenant::default();
    let text = crate::chain::cycle_text();
    let (entry, _) = stage.control.catalog.register(&tenant, text, "playbook", false).await?;
    let mut payload = Map::new();
    payload.insert("steps".into(), Value::from(events / 7));
    let request = StartRequest { catalog: Some(entry.id), payload, ..StartRequest::default() };
    let execution = stage.control.journal.executions.start(&tenant, request).await?.execution;
    stage.control.journal.executions.wait_until_finished(&tenant, execution).await?;
    let place = stage.close().await.reopen(medium).await?;
    let row = place.store.execution(&tenant, execution).await?.ok_or("the execution")?;
    let stage = Stage::on(place, 1).await?;
    let report = EventReport {
        execution,
        event: None,
        event_type: "progress".into(),
        step: "s".into(),
        status: None,
        payload: None,
        meta: None,
        worker: None,
        columns: None,
    };
    let started = Instant::now();
    stage.control.remote.reports.record(&tenant, report).await?;
    let took = started.elapsed().as_secs_f64() * 1e3;
    drop(stage.close().await.close().await);
    let fields = [("events", row.version.0 as f64), ("open_ms", took)];
    Ok(line("open_cold", medium.name(), &fields))
}

/// Chains on one process and on two that share a database: processor time per step, and how many
/// decisions met another's.
pub(crate) async fn replicas(one: &Medium, two: &Medium, steps: usize) -> Outcome<String> {
    let (alone, _) = on_replicas(one, 1, steps).await?;
    let (together, conflicts) = on_replicas(two, 2, steps).await?;
    let fields = [
        ("cpu_us_per_step_alone", alone * 1e6),
        ("cpu_us_per_step_together", together * 1e6),
        ("ratio", together / alone),
        ("conflicts_percent", conflicts * 100.0),
    ];
    Ok(line("replicas", one.name(), &fields))
}

/// Processor seconds of this process per step, and conflicts per step. An execution stays with the
/// process that started it, as with routing by its hash; each process is as busy as one alone.
async fn on_replicas(medium: &Medium, count: usize, steps: usize) -> Outcome<(f64, f64)> {
    let mut stages = Vec::new();
    for _ in 0..count {
        stages.push(Stage::open(medium, WIDTH).await?);
    }
    let tenant = Tenant::default();
    let text = crate::chain::chain_text(100);
    let (entry, _) = stages[0].control.catalog.register(&tenant, text, "playbook", false).await?;
    let cpu = crate::usage::cpu_seconds();
    let mut lanes = tokio::task::JoinSet::new();
    let width = WIDTH * count;
    let executions = (steps / 100 / width).max(1);
    for lane in 0..width {
        let control = stages[lane % count].control.clone();
        let (tenant, catalog) = (tenant.clone(), Some(entry.id));
        lanes.spawn(async move {
            for _ in 0..executions {
                let request = StartRequest { catalog, ..StartRequest::default() };
                let started = control.journal.executions.start(&tenant, request).await;
                let id = started.map_err(|error| error.to_string())?.execution;
                let ended = control.journal.executions.wait_until_finished(&tenant, id).await;
                ended.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        });
    }
    for lane in lanes.join_all().await {
        lane?;
    }
    let steps = (executions * width * 100) as f64;
    let cpu = crate::usage::cpu_seconds() - cpu;
    let conflicts: u64 =
        stages.iter().map(|stage| stage.control.journal.metrics.conflicts.get()).sum();
    for stage in stages {
        drop(Arc::new(stage.close().await));
    }
    Ok((cpu / steps, conflicts as f64 / steps))
}
