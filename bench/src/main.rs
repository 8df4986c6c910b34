//! Measures the control plane, one JSON object per line on stdout.
//!
//! Every line about a store carries that store's raw limit from the same run: machines differ, the
//! ratio says how close the engine is to what the disk allows. The method is in `bench/README.md`.

mod chain;
mod raw;
mod report;
mod stage;

use clap::Parser;

use crate::report::Report;
use crate::stage::StoreKind;

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
    /// Only measurements whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&arguments))
}

async fn measure(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let wanted = |name: &str| name.contains(&arguments.only);
    for store in [StoreKind::Memory, StoreKind::Sqlite] {
        if wanted("chain_many") {
            let plan = chain::Plan::many(store, 64, 100, arguments.steps);
            Report::print(chain::run("chain_many", plan).await?);
        }
        if wanted("chain_one") {
            let plan = chain::Plan::many(store, 1, 100, arguments.steps / 40);
            Report::print(chain::run("chain_one", plan).await?);
        }
        if wanted("cycle") {
            let steps = arguments.long;
            let short = chain::Plan::cycle(store, 100, steps / 5);
            let short = chain::run("cycle_of_100", short).await?;
            let mut long =
                chain::run("cycle_long", chain::Plan::cycle(store, steps, steps)).await?;
            let cost = |report: &Report| 1.0 / report.steps_per_second;
            long.cost_ratio = Some((cost(&long) / cost(&short) * 100.0).round() / 100.0);
            Report::print(short);
            Report::print(long);
        }
    }
    Ok(())
}
