//! Chains of no-op steps: what the engine, the journal and the store cost by themselves.

use std::fmt::Write as _;

use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Fact, Map, Seq, Tenant, Value};

use crate::raw;
use crate::report::Report;
use crate::stage::{Medium, Stage};
use crate::usage::{self, Usage};

/// How executions are made and how many.
pub(crate) struct Plan {
    medium: Medium,
    concurrency: usize,
    executions: usize,
    steps_each: usize,
    playbook: String,
    payload: Map,
}

impl Plan {
    /// Chains of `length` steps, `concurrency` at a time, until `steps` have ended.
    pub(crate) fn many(medium: &Medium, concurrency: usize, length: usize, steps: usize) -> Self {
        let playbook = chain_text(length);
        let executions = (steps / length).max(concurrency);
        Self {
            medium: medium.clone(),
            concurrency,
            executions,
            steps_each: length,
            playbook,
            payload: Map::new(),
        }
    }

    /// One execution after another that visits one step `length` times, until `steps` have ended.
    pub(crate) fn cycle(medium: &Medium, length: usize, steps: usize) -> Self {
        let playbook = cycle_text();
        let mut payload = Map::new();
        payload.insert("steps".into(), Value::from(length));
        let executions = (steps / length).max(1);
        Self {
            medium: medium.clone(),
            concurrency: 1,
            executions,
            steps_each: length,
            playbook,
            payload,
        }
    }
}

/// A chain of `length` steps.
pub(crate) fn chain_text(length: usize) -> String {
    let mut playbook = head();
    for step in 0..length {
        let next = if step + 1 < length {
            format!(", next: {{arcs: [{{step: s{}}}]}}", step + 1)
        } else {
            String::new()
        };
        let _ = writeln!(playbook, "  - {{step: s{step}, tool: {{kind: noop}}{next}}}");
    }
    playbook
}

/// One step that is visited `workload.steps` times.
pub(crate) fn cycle_text() -> String {
    let mut playbook = head();
    playbook.push_str(
        "  - step: s\n    tool: {kind: noop}\n    set: {ctx.done: '{{ ctx.done | default(0) + 1 }}'}\n    \
         next: {arcs: [{step: s, when: 'ctx.done < workload.steps'}]}\n",
    );
    playbook
}

fn head() -> String {
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: bench}\nworkflow:\n".to_owned()
}

/// Runs a plan on a fresh store.
pub(crate) async fn run(
    bench: &'static str,
    plan: Plan,
    raw: Option<f64>,
) -> Result<Report, Box<dyn std::error::Error>> {
    let stage = Stage::open(&plan.medium, plan.concurrency).await?;
    let tenant = Tenant::default();
    let text = plan.playbook.clone();
    let (entry, _) = stage.control.catalog.register(&tenant, text, "playbook", false).await?;
    let before = stage.place.bytes().await?;
    let numbered = transactions(&plan.medium).await?;
    let before_all = Usage::now();

    let mut lanes = Vec::new();
    for lane in 0..plan.concurrency {
        let executions = (plan.executions + plan.concurrency - 1 - lane) / plan.concurrency;
        let control = stage.control.clone();
        let (tenant, payload, catalog) = (tenant.clone(), plan.payload.clone(), entry.id);
        lanes.push(tokio::spawn(async move {
            let mut ids = Vec::with_capacity(executions);
            for _ in 0..executions {
                let request = StartRequest {
                    catalog: Some(catalog),
                    payload: payload.clone(),
                    ..StartRequest::default()
                };
                let started = control.journal.executions.start(&tenant, request).await;
                let id = started.map_err(|error| error.to_string())?.execution;
                let ended = control.journal.executions.wait_until_finished(&tenant, id).await;
                ended.map_err(|error| error.to_string())?;
                ids.push(id);
            }
            Ok::<_, String>(ids)
        }));
    }
    let mut ids = Vec::new();
    for lane in lanes {
        ids.extend(lane.await??);
    }
    let used = before_all.used();
    let numbered = transactions(&plan.medium).await?.zip(numbered);
    let resident_mib = usage::resident_mib();

    let steps = ids.len() * plan.steps_each;
    let measured = measured(&stage, &ids).await?;
    if measured.steps != steps {
        return Err(format!("{} of {steps} steps ended", measured.steps).into());
    }
    let bytes = stage.place.bytes().await?.zip(before).map(|(after, before)| after - before);
    stage.close().await;
    let in_transaction = numbered.map(|(after, before)| as_f64(steps) / (after - before).max(1.0));
    // Inserts of as many rows at a time, where that is known.
    let raw = match (plan.medium.database(), in_transaction) {
        (Some(url), Some(width)) if plan.concurrency > 1 => {
            let (width, rounds) = ((width.round() as usize).max(1), 2_000);
            let steps = steps.min(width * rounds);
            Some(raw::postgres_rows_per_second(url, steps, width).await?)
        }
        _ => raw,
    };

    let per_step = |n: f64| n / as_f64(steps);
    // Each step also writes a command's row and updates the execution's.
    let rows = measured.appends + 2 * steps;
    let rows_per_second = as_f64(rows) / used.seconds;
    Ok(Report {
        bench,
        store: plan.medium.name(),
        concurrency: plan.concurrency,
        steps,
        steps_per_second: round(as_f64(steps) / used.seconds),
        p50_us: measured.per_mille(500),
        p99_us: measured.per_mille(990),
        p999_us: measured.per_mille(999),
        rows_per_step: round(per_step(as_f64(rows))),
        bytes_per_step: bytes.map(|bytes| round(per_step(bytes as f64))),
        steps_per_transaction: in_transaction.map(round),
        raw_rows_per_second: raw.map(round),
        of_raw: raw.map(|raw| round(rows_per_second / raw)),
        written_bytes_per_step: round(per_step(used.written_bytes)),
        cpu_ms_per_1000_steps: round(per_step(used.cpu_seconds * 1e6)),
        resident_mib: round(resident_mib),
        allocations_per_step: used.allocations.map(|count| round(per_step(count as f64))),
        of_fsync: None,
        cost_ratio: None,
    })
}

/// The number of the newest transaction that wrote, where they are numbered.
async fn transactions(medium: &Medium) -> Result<Option<f64>, sqlx::Error> {
    match medium.database() {
        Some(url) => raw::postgres_transaction(url).await.map(Some),
        None => Ok(None),
    }
}

struct Measured {
    steps: usize,
    /// Rows of the log. The events of an append share a time, which differs from that of the next.
    appends: usize,
    /// Times from one step's entry to the next one's, sorted.
    gaps_us: Vec<i64>,
}

impl Measured {
    fn per_mille(&self, part: usize) -> i64 {
        let at = (self.gaps_us.len() * part / 1000).min(self.gaps_us.len().saturating_sub(1));
        self.gaps_us.get(at).copied().unwrap_or(0)
    }
}

/// Reads the logs back: what was measured is what is recorded.
async fn measured(
    stage: &Stage,
    ids: &[ExecutionId],
) -> Result<Measured, Box<dyn std::error::Error>> {
    let mut measured = Measured { steps: 0, appends: 0, gaps_us: Vec::new() };
    for id in ids {
        let (mut after, mut last, mut append) = (Seq::START, None, None);
        loop {
            let events = stage.place.store.read(*id, after, 10_000).await?;
            let Some(newest) = events.last() else { break };
            after = newest.seq;
            for event in events {
                measured.appends += usize::from(append.replace(event.at) != Some(event.at));
                match event.fact {
                    Fact::StepEntered { .. } => {
                        let at = event.at.as_micros();
                        if let Some(last) = last.replace(at) {
                            measured.gaps_us.push(at - last);
                        }
                    }
                    Fact::StepExited { .. } => measured.steps += 1,
                    _ => {}
                }
            }
        }
    }
    measured.gaps_us.sort_unstable();
    Ok(measured)
}

pub(crate) fn as_f64(n: usize) -> f64 {
    n as f64
}

pub(crate) fn round(n: f64) -> f64 {
    (n * 100.0).round() / 100.0
}
