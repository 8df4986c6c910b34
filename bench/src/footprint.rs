//! What is there before anything is done: how soon the program listens, and what memory it and its
//! executions take.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use noetl_journal::StartRequest;
use noetl_model::{Failure, Tenant, Value};
use noetl_tools::{Noop, Tool, ToolCall, ToolRegistry};
use tokio::sync::Notify;

use crate::chain::as_f64;
use crate::processes::Process;
use crate::report::line;
use crate::stage::{Medium, Place, Stage};
use crate::usage;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Starts per measurement.
const STARTS: usize = 20;

/// How long the program is left alone before its memory is looked at.
const REST: Duration = Duration::from_secs(3);

/// Executions whose memory is looked at.
const EXECUTIONS: usize = 10_000;

/// The time until `noetl dev` on a new SQLite file says that it listens, and on the same file again;
/// then its memory, and the processor time it takes when nobody asks it anything.
pub(crate) async fn start_up(program: &Path) -> Outcome<String> {
    let mut first = Vec::with_capacity(STARTS);
    let mut again = Vec::with_capacity(STARTS);
    let mut idle = (0.0, 0.0);
    for turn in 0..STARTS {
        let directory = tempfile::tempdir_in(".")?;
        for times in [&mut first, &mut again] {
            let started = Instant::now();
            let process = Process::dev(program, directory.path())?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            if turn + 1 == STARTS {
                tokio::time::sleep(REST).await;
                let before = process.cpu_seconds();
                tokio::time::sleep(REST).await;
                idle = (process.resident_mib(), process.cpu_seconds() - before);
            }
        }
    }
    first.sort_by(f64::total_cmp);
    again.sort_by(f64::total_cmp);
    let fields = [
        ("new_p50_ms", first[STARTS / 2]),
        ("again_p50_ms", again[STARTS / 2]),
        ("idle_resident_mib", idle.0),
        ("idle_cpu_ms_per_second", idle.1 * 1e3 / REST.as_secs_f64()),
    ];
    Ok(line("start_up", "sqlite", &fields))
}

/// A tool that runs until it is told to end.
struct Held(Arc<Notify>);

#[async_trait]
impl Tool for Held {
    fn kind(&self) -> &'static str {
        "noop"
    }

    async fn run(&self, _: ToolCall) -> Result<Value, Failure> {
        self.0.notified().await;
        Ok(Value::Null)
    }
}

/// Memory of executions that wait for a worker, and of such that run.
pub(crate) async fn executions(medium: &Medium) -> Outcome<String> {
    let idle = grown(medium, 0, ToolRegistry::default().with(Noop)).await?;
    let running =
        grown(medium, EXECUTIONS, ToolRegistry::default().with(Held(Arc::new(Notify::new()))))
            .await?;
    let fields = [
        ("executions", as_f64(EXECUTIONS)),
        ("idle_kib_each", idle * 1024.0 / as_f64(EXECUTIONS)),
        ("running_kib_each", running * 1024.0 / as_f64(EXECUTIONS)),
    ];
    Ok(line("execution_memory", medium.name(), &fields))
}

/// Mebibytes by which this process grows when so many executions have begun.
async fn grown(medium: &Medium, slots: usize, tools: ToolRegistry) -> Outcome<f64> {
    let stage = Stage::with(Place::open(medium).await?, slots, tools).await?;
    let tenant = Tenant::default();
    let text = crate::chain::chain_text(2);
    let (entry, _) = stage.control.catalog.register(&tenant, text, "playbook", false).await?;
    let before = usage::resident_mib();
    for _ in 0..EXECUTIONS {
        let request = StartRequest { catalog: Some(entry.id), ..StartRequest::default() };
        stage.control.journal.executions.start(&tenant, request).await?;
    }
    let grown = usage::resident_mib() - before;
    stage.abandon().await;
    Ok(grown)
}
