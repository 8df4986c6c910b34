//! Measures the control plane, one JSON object per line on stdout.
//!
//! Every line about a store carries that store's raw limit from the same run: machines differ, the
//! ratio says how close the engine is to what the disk allows. The method is in `bench/README.md`.

mod chain;
mod http;
mod language;
mod postgres;
mod raw;
mod raw_outbox;
mod replay;
mod report;
mod stage;
mod store;
mod system;
mod tailer;
mod work;

use clap::Parser;

use crate::postgres::Server;
use crate::report::Report;
use crate::stage::Medium;

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
    /// Only measurements whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only this store: memory, sqlite or postgres.
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
    if on("memory") {
        chains(&wanted, &Medium::Memory, arguments, None).await?;
        if wanted("replay") {
            report::print(&replay::replay(&Medium::Memory, arguments.replay).await?);
        }
    }
    if on("sqlite") {
        let medium = Medium::Sqlite;
        let mut raw = None;
        if wanted("journal") || wanted("chain") || wanted("project") {
            let (line, limit) = store::journal(&medium, steps).await?;
            report::print(&line);
            raw = limit;
        }
        chains(&wanted, &medium, arguments, raw).await?;
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
            report::print(&system::project(&medium, steps, raw).await?);
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
    }
    if on("postgres") {
        let mut server = Server::start()?;
        let mut fresh = || server.database().map(Medium::Postgres);
        let mut raw = None;
        if wanted("journal") || wanted("chain") || wanted("project") {
            let (line, limit) = store::journal(&fresh()?, steps).await?;
            report::print(&line);
            raw = limit;
        }
        chains(&wanted, &fresh()?, arguments, raw).await?;
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
            report::print(&system::project(&fresh()?, steps, raw).await?);
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
        if wanted("replicas") {
            report::print(&store::replicas(&fresh()?, &fresh()?, steps / 4).await?);
        }
    }
    Ok(())
}

async fn chains(
    wanted: &impl Fn(&str) -> bool,
    medium: &Medium,
    arguments: &Arguments,
    raw: Option<f64>,
) -> Result<(), Box<dyn std::error::Error>> {
    if wanted("chain_many") {
        let plan = chain::Plan::many(medium, 64, 100, arguments.steps);
        Report::print(chain::run("chain_many", plan, raw).await?);
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
    if wanted("chain_one") {
        let plan = chain::Plan::many(medium, 1, 100, arguments.steps / 40);
        Report::print(chain::run("chain_one", plan, None).await?);
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
