//! Measures the control plane, one JSON object per line on stdout.
//!
//! Lines about a store carry the rate of plain access to it from the same run: machines differ, the
//! ratio takes the speed of the disk out. The method is in `bench/README.md`.

mod allocations;
mod chain;
mod footprint;
mod http;
mod language;
mod limits;
mod messages;
mod nats;
mod postgres;
mod processes;
mod raw;
mod raw_outbox;
mod replay;
mod report;
mod stage;
mod steps;
mod store;
mod system;
mod tailer;
mod usage;
mod work;

use std::path::PathBuf;

use clap::Parser;

use crate::postgres::Server;
use crate::report::Report;
use crate::stage::Medium;

/// What the medium allows by itself, measured in the same run.
#[derive(Clone, Copy, Default)]
struct Limits {
    /// Rows inserted plainly per second.
    rows: Option<f64>,
    /// A sync of the disk.
    fsync_us: Option<f64>,
}

/// Measurements that are beside plain inserts of the same rows.
const LIMITED: [&str; 4] = ["journal", "chain_100", "chain_1000", "project"];

/// Measurements that run executions.
const EXECUTING: [&str; 10] = [
    "chain_100",
    "chain_1000",
    "fan_out",
    "pipeline",
    "calls",
    "arcs",
    "large",
    "execution_memory",
    "chain_1",
    "cycle",
];

/// What to measure.
#[derive(Debug, Parser)]
#[command(name = "noetl-bench")]
struct Arguments {
    /// Steps per measurement with many concurrent executions.
    #[arg(long, default_value_t = 200_000)]
    steps: usize,
    /// Steps of the one long execution.
    #[arg(long, default_value_t = 100_000)]
    long: usize,
    /// Events of the log that is replayed.
    #[arg(long, default_value_t = 1_000_000)]
    replay: usize,
    /// Steps of each measurement with worker processes.
    #[arg(long, default_value_t = 20_000)]
    worker_steps: usize,
    /// Messages of each measurement of a source.
    #[arg(long, default_value_t = 20_000)]
    messages: usize,
    /// The program whose processes are measured; the one beside this when it is not given.
    #[arg(long)]
    noetl: Option<PathBuf>,
    /// Only measurements whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only this store: memory, sqlite, postgres or postgres+nats.
    #[arg(long)]
    store: Option<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&arguments))
}

async fn measure(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let wanted = |name: &str| name.contains(&arguments.only);
    let on = |name: &str| arguments.store.as_deref().is_none_or(|store| store == name);
    let steps = arguments.steps;
    let mut limits = Limits::default();
    if wanted("json") {
        report::print(&limits::json()?);
    }
    if (wanted("fsync") || wanted("chain_1")) && arguments.store.as_deref() != Some("memory") {
        let (line, us) = limits::fsync()?;
        report::print(&line);
        limits.fsync_us = Some(us);
    }
    if wanted("start_up") && on("sqlite") {
        report::print(&footprint::start_up(&program(arguments)?).await?);
    }
    if on("memory") {
        chains(&wanted, &Medium::Memory, arguments, Limits::default()).await?;
        if wanted("replay") {
            report::print(&replay::replay(&Medium::Memory, arguments.replay).await?);
        }
    }
    if on("sqlite") {
        let medium = Medium::Sqlite;
        if LIMITED.into_iter().any(&wanted) {
            let (line, limit) = store::journal(&medium, steps).await?;
            report::print(&line);
            limits.rows = limit;
        }
        chains(&wanted, &medium, arguments, limits).await?;
        if wanted("open_cold") {
            report::print(&store::open(&medium, arguments.long).await?);
        }
        if wanted("list_50") {
            report::print(&store::list(&medium, [medium.clone(), medium.clone()]).await?);
        }
        if wanted("outbox") {
            report::print(&system::outbox(&medium).await?);
        }
        if wanted("project") {
            report::print(&system::project(&medium, steps, limits.rows).await?);
        }
        if wanted("replay") {
            report::print(&replay::replay(&medium, arguments.replay).await?);
        }
        if wanted("tailer") {
            report::print(&tailer::tailer(&medium, steps / 4).await?);
        }
        if wanted("http") {
            http::http(&medium).await?.iter().for_each(|line| report::print(line));
        }
        messages::messages(&mut || Ok(Medium::Sqlite), &wanted, arguments.messages).await?;
    }
    if on("postgres") {
        let mut server = Server::start()?;
        let mut fresh = || server.database().map(Medium::Postgres);
        let mut limits = Limits::default();
        if LIMITED.into_iter().any(&wanted) {
            let (line, limit) = store::journal(&fresh()?, steps).await?;
            report::print(&line);
            limits.rows = limit;
        }
        chains(&wanted, &fresh()?, arguments, limits).await?;
        if wanted("open_cold") {
            report::print(&store::open(&fresh()?, arguments.long).await?);
        }
        if wanted("list_50") {
            let databases = [fresh()?, fresh()?];
            report::print(&store::list(&databases[0].clone(), databases).await?);
        }
        if wanted("outbox") {
            report::print(&system::outbox(&fresh()?).await?);
        }
        if wanted("project") {
            report::print(&system::project(&fresh()?, steps, limits.rows).await?);
        }
        if wanted("replay") {
            report::print(&replay::replay(&fresh()?, arguments.replay).await?);
        }
        if wanted("tailer") {
            report::print(&tailer::tailer(&fresh()?, steps / 4).await?);
        }
        if wanted("http") {
            http::http(&fresh()?).await?.iter().for_each(|line| report::print(line));
        }
        messages::messages(&mut fresh, &wanted, arguments.messages).await?;
        let ways: Vec<&str> = steps::WAYS.into_iter().filter(|way| wanted(way)).collect();
        if !ways.is_empty() {
            let plan = steps::Plan { program: program(arguments)?, steps: arguments.worker_steps };
            plan.measure(&ways, &mut fresh).await?;
        }
        if wanted("replicas") {
            report::print(&store::replicas(&fresh()?, &fresh()?, steps / 4).await?);
        }
    }
    if on("postgres+nats") {
        let (mut server, bus) = (Server::start()?, nats::Server::start()?);
        for name in EXECUTING.into_iter().filter(|name| wanted(name)) {
            // A database each: what one leaves unpublished is not the next one's.
            let (database, nats) = (server.database()?, bus.url.clone());
            let medium = Medium::PostgresNats { database, nats };
            chains(&|other: &str| other == name, &medium, arguments, Limits::default()).await?;
        }
    }
    Ok(())
}

/// The program that is measured in processes of its own.
fn program(arguments: &Arguments) -> std::io::Result<PathBuf> {
    match &arguments.noetl {
        Some(program) => Ok(program.clone()),
        None => Ok(std::env::current_exe()?.with_file_name("noetl")),
    }
}

async fn chains(
    wanted: &impl Fn(&str) -> bool,
    medium: &Medium,
    arguments: &Arguments,
    limits: Limits,
) -> Result<(), Box<dyn std::error::Error>> {
    for (name, width) in [("chain_100", 100), ("chain_1000", 1000)] {
        if wanted(name) {
            let plan = chain::Plan::many(medium, width, 100, arguments.steps);
            Report::print(chain::run(name, plan, limits.rows).await?);
        }
    }
    if wanted("fan_out") {
        report::print(&language::fan_out(medium).await?.to_string());
    }
    if wanted("pipeline") {
        report::print(&language::pipeline(medium).await?.to_string());
    }
    if wanted("calls") {
        report::print(&language::calls(medium).await?.to_string());
    }
    if wanted("arcs") {
        report::print(&language::arcs(medium).await?.to_string());
    }
    if wanted("large") {
        report::print(&language::large(medium).await?.to_string());
    }
    if wanted("execution_memory") {
        report::print(&footprint::executions(medium).await?);
    }
    if wanted("chain_1") {
        let plan = chain::Plan::many(medium, 1, 100, arguments.steps / 40);
        let mut report = chain::run("chain_1", plan, None).await?;
        report.of_fsync = limits.fsync_us.map(|us| chain::round(report.p50_us as f64 / us));
        Report::print(report);
    }
    if wanted("cycle") {
        let steps = arguments.long;
        let short = chain::Plan::cycle(medium, 100, steps / 5);
        let short = chain::run("cycle_of_100", short, None).await?;
        let long = chain::Plan::cycle(medium, steps, steps);
        let mut long = chain::run("cycle_long", long, None).await?;
        let cost = |report: &Report| 1.0 / report.steps_per_second;
        long.cost_ratio = Some(chain::round(cost(&long) / cost(&short)));
        Report::print(short);
        Report::print(long);
    }
    Ok(())
}
