//! Servers, workers, a database and a bus under load for as long as it is told, everything broken at
//! random, often two things at once, and the disk filled now and then. What callers were told has to fit
//! one order per execution.

mod order;
mod people;
mod trouble;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::load::Load;
use crate::site::Site;
use crate::verdict::Verdict;
use crate::{Failure, Ground};

use self::people::People;

/// How long everything may take to end once nothing is broken any more.
const END_MAX: Duration = Duration::from_secs(240);

/// What to break, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The small disk that the database is on, if it is; it is filled now and then.
    #[arg(long)]
    disk: Option<PathBuf>,
    /// For how long things are broken.
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
}

pub(crate) async fn run(
    ground: &Ground,
    arguments: &Arguments,
    chance: &mut Chance,
) -> Result<Verdict, Failure> {
    let site = Site::start(ground).await?;
    let load = Load::start(site.servers.clone(), chance).await?;
    let people = People::start(&site.servers, chance).await?;
    load.begun().await;
    let end = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let struck = trouble::until(end, &site, arguments.disk.as_deref(), chance).await?;
    let told = people.stop().await;
    let acknowledged = load.stop().await?;
    let mut verdict = Verdict::of(&site.database.url, &acknowledged, END_MAX).await?;
    site.end().await;
    verdict.kills = struck.values().sum();
    let crashes = struck.iter().filter(|(name, _)| name.contains("database crashes"));
    verdict.crashes = crashes.map(|(_, count)| count).sum();
    let counts = struck.iter().map(|(name, count)| format!("{count:>5} times: {name}"));
    verdict.notes.extend(counts);
    verdict.notes.push(format!(
        "{} executions were decided by callers at once, in {} calls, {} of them without an answer; \
         {} fit no order",
        told.executions,
        told.calls,
        told.unanswered,
        told.problems.len()
    ));
    verdict.problems.extend(told.problems);
    Ok(verdict)
}
