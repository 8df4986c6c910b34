//! Runs two servers on one database under load, kills all three at random, and verifies every log.
//!
//! What it is for: faults in combinations nobody thought of. What it says at the end is one JSON
//! line on stdout, and the same in words on stderr; it fails when anything is wrong.

mod chance;
mod load;
mod servers;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::chance::Chance;
use crate::load::Load;
use crate::servers::{Database, Server};
use crate::verdict::Verdict;

/// How long everything may take to end once nothing is killed any more. A dead process is missed
/// after its lease, and a step runs for a second at most.
const END_MAX: Duration = Duration::from_secs(180);

/// What to run, and for how long.
#[derive(Debug, Parser)]
#[command(name = "noetl-soak")]
struct Arguments {
    /// The program.
    #[arg(long)]
    noetl: PathBuf,
    /// The script that starts and stops Postgres.
    #[arg(long)]
    service: PathBuf,
    /// Where the database is kept.
    #[arg(long)]
    directory: PathBuf,
    /// For how long things are killed.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// What chance begins with.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let verdict = runtime.block_on(soak(&arguments))?;
    verdict.print(arguments.seed);
    Ok(if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn soak(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut chance = Chance::new(arguments.seed);
    let database = Database::start(&arguments.service, &arguments.directory).await?;
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(Arc::new(Server::start(&arguments.noetl, database.url()).await?));
    }
    let load = Load::start(servers.clone(), &mut chance).await?;
    // What is killed before anything runs shows nothing.
    while load.started() == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let until = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let (mut kills, mut crashes) = (0, 0);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(chance.below(6000))).await;
        match chance.below(4) {
            0 => {
                crashes += 1;
                database.stop("immediate").await?;
                tokio::time::sleep(Duration::from_millis(chance.below(2000))).await;
                database.start_again().await?;
            }
            number => {
                kills += 1;
                let server = &servers[usize::from(number == 1)];
                server.kill().await;
                tokio::time::sleep(Duration::from_millis(chance.below(3000))).await;
                server.start_again().await?;
            }
        }
    }
    let acknowledged = load.stop().await?;
    let mut verdict = Verdict::of(database.url(), &acknowledged, END_MAX).await?;
    (verdict.kills, verdict.crashes) = (kills, crashes);
    for server in servers {
        server.kill().await;
    }
    Ok(verdict)
}
