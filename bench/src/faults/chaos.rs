//! Two servers, three workers, a database and a bus under work, and everything that can happen to them,
//! one after the other.

use std::time::{Duration, Instant};

use noetl_model::ExecutionId;
use noetl_store::ExecutionStore;
use noetl_store_postgres::{Options, PostgresStore};

use crate::chance::Chance;
use crate::fault::{Fault, Struck};
use crate::load::{Load, STEPS};
use crate::site::Site;
use crate::verdict::Verdict;
use crate::{Failure, Ground, say};

/// How long everything may take to end once nothing is broken any more.
const END_MAX: Duration = Duration::from_secs(180);

/// How long the work of one fault may take to be taken in.
const WORK_MAX: Duration = Duration::from_secs(600);

/// What to break, under how much work.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Steps that are run during each fault, at least.
    #[arg(long, default_value_t = 10_000)]
    steps: usize,
    /// Only faults whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

pub(crate) async fn run(
    ground: &Ground,
    arguments: &Arguments,
    chance: &mut Chance,
) -> Result<Verdict, Failure> {
    let site = Site::start(ground).await?;
    let store = PostgresStore::open(Options::new(&site.database.url)?.migrate(false)).await?;
    let (mut acknowledged, mut struck) = (Vec::new(), 0);
    for fault in Fault::ALL.into_iter().filter(|it| it.name().contains(&arguments.only)) {
        let work = Work { steps: arguments.steps, store: &store };
        struck += usize::from(work.during(fault, &site, chance, &mut acknowledged).await?);
    }
    let mut verdict = Verdict::of(&site.database.url, &acknowledged, END_MAX).await?;
    verdict.kills = struck;
    site.end().await;
    Ok(verdict)
}

/// The work of one fault.
struct Work<'s> {
    steps: usize,
    store: &'s PostgresStore,
}

impl Work<'_> {
    /// Works while something is broken and mended again, until everything has ended. Whether it could be
    /// broken here.
    async fn during(
        &self,
        fault: Fault,
        site: &Site,
        chance: &mut Chance,
        acknowledged: &mut Vec<ExecutionId>,
    ) -> Result<bool, Failure> {
        let began = Instant::now();
        let load = Load::start(site.servers.clone(), chance).await?;
        self.until_begun(&load, self.steps / 4, began).await?;
        let struck = fault.strike(site).await?;
        self.until_begun(&load, self.steps, began).await?;
        let run = load.stop().await?;
        let (steps, mended) = (run.len() * STEPS, Instant::now());
        acknowledged.extend(run);
        self.until_ended(mended).await?;
        let (all, after) = (began.elapsed().as_secs_f64(), mended.elapsed().as_secs_f64());
        match &struck {
            Struck::Done => say(&format!(
                "  {:<44} {steps:>7} steps in {all:>6.1} s, all over {after:>5.1} s after the last start",
                fault.name()
            )),
            Struck::Skipped(why) => say(&format!("  {:<44} skipped: {why}", fault.name())),
        }
        Ok(matches!(struck, Struck::Done))
    }

    async fn until_begun(&self, load: &Load, steps: usize, began: Instant) -> Result<(), Failure> {
        while load.started() * STEPS < steps {
            if began.elapsed() > WORK_MAX {
                return Err(format!("{} of {steps} steps began", load.started() * STEPS).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Waits until nothing runs; what is left when patience ends is for the verdict to tell.
    async fn until_ended(&self, since: Instant) -> Result<(), Failure> {
        while since.elapsed() < END_MAX {
            if self.store.unfinished(ExecutionId::new(i64::MIN), 1).await?.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }
}
