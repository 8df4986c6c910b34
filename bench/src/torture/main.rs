//! Servers, workers, a database and a bus under load for as long as it is told, everything broken at
//! random; afterwards every log is verified, and what callers were told fits one order per execution.
//!
//! Where `noetl-chaos` breaks each thing in each way once, this goes on, breaks two things at once,
//! fills the disk, and holds callers' words against each other. What it says is one JSON line on
//! stdout, and the same in words on stderr; it fails when anything is wrong.

#[path = "../soak/chance.rs"]
mod chance;
#[path = "../chaos/faults.rs"]
mod faults;
#[path = "../soak/load.rs"]
mod load;
mod order;
mod people;
#[path = "../chaos/process.rs"]
mod process;
#[path = "../chaos/relay.rs"]
mod relay;
#[path = "../chaos/services.rs"]
mod services;
#[path = "../chaos/site.rs"]
mod site;
mod trouble;
#[path = "../soak/verdict.rs"]
mod verdict;
#[path = "../chaos/wire.rs"]
mod wire;

/// What the load calls: the same as elsewhere, started otherwise.
mod servers {
    pub(crate) use crate::process::Server;
}

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use noetl_model::ExecutionId;
use noetl_store_postgres::{Options, PostgresStore};

use crate::chance::Chance;
use crate::load::Load;
use crate::people::People;
use crate::site::Site;
use crate::verdict::Verdict;

/// How long everything may take to end once nothing is broken any more.
const END_MAX: Duration = Duration::from_secs(240);

/// Executions verified at a time.
const PAGE: usize = 500;

/// What to run, and for how long.
#[derive(Debug, Parser)]
#[command(name = "noetl-torture")]
struct Arguments {
    /// The program.
    #[arg(long)]
    noetl: PathBuf,
    /// Where the scripts are that start and stop Postgres and NATS.
    #[arg(long)]
    services: PathBuf,
    /// Where both keep what they have.
    #[arg(long)]
    directory: PathBuf,
    /// The small disk that the database is on, if it is; it is filled now and then.
    #[arg(long)]
    disk: Option<PathBuf>,
    /// For how long things are broken.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// What chance begins with.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let is_good = runtime.block_on(torture(&arguments))?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn torture(arguments: &Arguments) -> Result<bool, Failure> {
    let mut chance = Chance::new(arguments.seed);
    let site = Site::start(&arguments.noetl, &arguments.services, &arguments.directory).await?;
    let load = Load::start(site.servers.clone(), &mut chance).await?;
    let people = People::start(&site.servers, &mut chance).await?;
    // What is broken before anything runs shows nothing.
    while load.started() == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let end = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let struck = trouble::until(end, &site, arguments.disk.as_deref(), &mut chance).await?;
    let told = people.stop().await;
    let acknowledged = load.stop().await?;
    let mut verdict = Verdict::of(&site.database.url, &acknowledged, END_MAX).await?;
    verdict.kills = usize::try_from(struck.values().sum::<u64>()).unwrap_or(usize::MAX);
    verdict.crashes = struck
        .iter()
        .filter(|(name, _)| name.contains("database crashes"))
        .map(|(_, count)| usize::try_from(*count).unwrap_or_default())
        .sum();
    let unsound = verify_all(&site.database.url).await?;
    site.end().await;
    verdict.print(arguments.seed);
    for (name, count) in &struck {
        say(&format!("  {count:>5} times: {name}"));
    }
    let problems = told.problems.len() + unsound.len();
    say(&format!(
        "{} executions were decided by callers at once, in {} calls, {} of them without an answer; \
         {problems} fit no order or are not sound",
        told.executions, told.calls, told.unanswered
    ));
    for problem in told.problems.iter().chain(&unsound) {
        say(&format!("  {problem}"));
    }
    Ok(verdict.is_good() && problems == 0)
}

/// What does not fit in the database, whatever was run.
async fn verify_all(url: &str) -> Result<Vec<String>, Failure> {
    let store = PostgresStore::open(Options::new(url)?.migrate(false)).await?;
    let mut problems = Vec::new();
    let mut after = ExecutionId::new(i64::MIN);
    loop {
        let verified = noetl_control::verify(&store, after, PAGE).await?;
        let found = verified.problems.into_iter();
        problems.extend(found.map(|it| format!("{}: {}", it.execution, it.message)));
        match verified.last {
            Some(last) => after = last,
            None => return Ok(problems),
        }
    }
}

#[expect(clippy::print_stderr, reason = "the report is what this program is for")]
fn say(line: &str) {
    eprintln!("{line}");
}
