//! Real processes under work, broken in real ways; afterwards everything has ended and every log is
//! verified. [`chaos`] breaks each thing in each way once, [`soak`] kills at random, and [`torture`]
//! breaks two things at once and holds what callers were told against each other.
//!
//! What it says is words on stderr and one JSON line on stdout; it fails when anything is wrong.

mod chance;
mod chaos;
mod fault;
mod hosts;
mod lines;
mod load;
mod process;
mod relay;
mod service;
mod site;
mod soak;
mod torture;
mod verdict;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::chance::Chance;

/// What to run.
#[derive(Debug, Parser)]
#[command(name = "noetl-faults")]
struct Arguments {
    #[command(flatten)]
    ground: Ground,
    #[command(subcommand)]
    manner: Manner,
}

/// What every run stands on.
#[derive(Debug, clap::Args)]
struct Ground {
    /// The program.
    #[arg(long)]
    noetl: PathBuf,
    /// Where the scripts are that start and stop Postgres and NATS.
    #[arg(long)]
    services: PathBuf,
    /// Where both keep what they have.
    #[arg(long)]
    directory: PathBuf,
    /// Everything has a host of its own, which `hosts.sh` made in that directory.
    #[arg(long)]
    hosts: bool,
    /// What chance begins with.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How things are broken.
#[derive(Debug, Subcommand)]
enum Manner {
    /// Each thing in each way, one after the other.
    Chaos(chaos::Arguments),
    /// Two servers and their database, killed at random.
    Soak(soak::Arguments),
    /// Everything at random, often two things at once.
    Torture(torture::Arguments),
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let Arguments { ground, manner } = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut chance = Chance::new(ground.seed);
    let verdict = runtime.block_on(async {
        match &manner {
            Manner::Chaos(arguments) => chaos::run(&ground, arguments, &mut chance).await,
            Manner::Soak(arguments) => soak::run(&ground, arguments, &mut chance).await,
            Manner::Torture(arguments) => torture::run(&ground, arguments, &mut chance).await,
        }
    })?;
    verdict.print(ground.seed);
    Ok(if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stderr, reason = "the report is what this program is for")]
fn say(line: &str) {
    eprintln!("{line}");
}
