//! Two servers on one database under load, all three killed at random: for faults in combinations
//! nobody thought of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::hosts::Place;
use crate::load::Load;
use crate::service::Service;
use crate::site;
use crate::verdict::Verdict;
use crate::{Failure, Ground};

/// How long everything may take to end once nothing is killed any more. A dead process is missed
/// after its lease, and a step runs for a second at most.
const END_MAX: Duration = Duration::from_secs(180);

/// For how long to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// For how long things are killed.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
}

pub(crate) async fn run(
    ground: &Ground,
    arguments: &Arguments,
    chance: &mut Chance,
) -> Result<Verdict, Failure> {
    let database = Service::start(ground, "postgres", Place::here()).await?;
    let mut servers = Vec::new();
    for _ in 0..2 {
        servers.push(Arc::new(site::server_with_worker(ground, &database.url).await?));
    }
    let load = Load::start(servers.clone(), chance).await?;
    load.begun().await;
    let until = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let (mut kills, mut crashes) = (0, 0);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(chance.below(6000))).await;
        match chance.below(4) {
            0 => {
                crashes += 1;
                database.run(&["stop"], &["immediate"]).await?;
                tokio::time::sleep(Duration::from_millis(chance.below(2000))).await;
                database.run(&["start"], &[]).await?;
            }
            number => {
                kills += 1;
                let process = &servers[usize::from(number == 1)].process;
                process.kill().await;
                tokio::time::sleep(Duration::from_millis(chance.below(3000))).await;
                process.start_again().await?;
            }
        }
    }
    let acknowledged = load.stop().await?;
    let mut verdict = Verdict::of(&database.url, &acknowledged, END_MAX).await?;
    (verdict.kills, verdict.crashes) = (kills, crashes);
    for server in servers {
        server.process.kill().await;
    }
    Ok(verdict)
}
