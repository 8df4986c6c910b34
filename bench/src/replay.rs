//! What it costs to replay one long log: rows per second beside reading the same rows without
//! folding them, and how much memory it takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_engine::replay::{Projection, ReplayEvent, ReplayScope, ReplayState};
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{ReadBound, Store};
use noetl_views::{ORGANIZATION, ReplayRequest};

use crate::report::line;
use crate::stage::{Medium, Stage};
use crate::usage::memory_mib;
use crate::work;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// As many rows as replay reads at a time.
const PAGE: usize = 5_000;

/// One execution of `events` events, replayed whole.
pub(crate) async fn replay(medium: &Medium, events: usize) -> Outcome<String> {
    let stage = Stage::open(medium, 0).await?;
    let store = stage.place.store.clone();
    let (execution, rows) = work::long(&*store, events).await?;
    let raw = raw_rows_per_second(store.clone(), execution, rows).await?;
    let decoded = decoded_per_second(store, execution, rows).await?;
    let request = ReplayRequest {
        execution,
        tenant: Tenant::default(),
        organization: ORGANIZATION.to_owned(),
        until: ReadBound::End,
        projection: Projection::All,
        limit: None,
        resolve_payloads: false,
    };
    let before = memory_mib("self", "VmRSS:");
    // Lets the peak begin anew.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let started = Instant::now();
    let replayed = stage.control.views.replay.state(&request).await?;
    let took = started.elapsed().as_secs_f64();
    let growth = memory_mib("self", "VmHWM:") - before;
    if replayed.state.event_count != u64::try_from(rows)? {
        return Err(format!("{} events of {rows}", replayed.state.event_count).into());
    }
    drop(replayed);
    let started = Instant::now();
    stage.control.views.replay.state(&request).await?;
    let again = started.elapsed().as_secs_f64();
    drop(stage.close().await.close().await);
    let rate = rows as f64 / took;
    let fields = [
        ("events", rows as f64),
        ("rows_per_second", rate),
        ("raw_read_rows_per_second", raw),
        ("of_raw", rate / raw),
        ("decoded_per_second", decoded),
        ("memory_growth_mib", growth),
        ("again_ms", again * 1e3),
    ];
    Ok(line("replay", medium.name(), &fields))
}

/// The pages a replay reads, and nothing done with them.
async fn raw_rows_per_second(
    store: Arc<dyn Store>,
    execution: ExecutionId,
    expected: usize,
) -> Outcome<f64> {
    let started = Instant::now();
    let (mut last, mut rows) = (None, 0);
    loop {
        let page = store.read_rows(execution, last, ReadBound::End, PAGE).await?;
        rows += page.len();
        match page.last() {
            Some(row) if page.len() == PAGE => last = Some(row.event_id),
            _ => break,
        }
    }
    if rows != expected {
        return Err(format!("{rows} rows of {expected}").into());
    }
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

/// Events per second that are folded once they are decoded: only the fold is timed.
async fn decoded_per_second(
    store: Arc<dyn Store>,
    execution: ExecutionId,
    expected: usize,
) -> Outcome<f64> {
    let mut state = ReplayState::new(ReplayScope {
        tenant_id: Tenant::DEFAULT.to_owned(),
        organization_id: ORGANIZATION.to_owned(),
        execution_id: execution.get(),
        projection: Projection::All,
    });
    let (mut last, mut took) = (None, Duration::ZERO);
    loop {
        let page = store.read_rows(execution, last, ReadBound::End, PAGE).await?;
        let events: Vec<ReplayEvent> = page.iter().map(ReplayEvent::from_row).collect();
        let started = Instant::now();
        events.iter().for_each(|event| state.apply(event));
        took += started.elapsed();
        match page.last() {
            Some(row) if page.len() == PAGE => last = Some(row.event_id),
            _ => break,
        }
    }
    if state.event_count != u64::try_from(expected)? {
        return Err(format!("{} events of {expected}", state.event_count).into());
    }
    Ok(expected as f64 / took.as_secs_f64())
}
