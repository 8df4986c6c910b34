//! Setup that follows from a seed: processes, workers, playbooks, and the rate of faults.

use std::collections::BTreeSet;
use std::time::Duration;

use super::chance::Chance;
use super::fault::Fault;
use super::planted::Planted;
use super::playbooks::{Document, documents};

#[derive(Debug, Clone, Default)]
pub struct SimConfig {
    /// Seed of every random choice.
    pub seed: u64,
    /// Most faults, or no limit.
    pub faults: Option<u64>,
    /// Most executions to start, or no limit.
    pub executions: Option<usize>,
    /// Kinds of faults to leave out.
    pub without: BTreeSet<Fault>,
    /// Defect planted into the store, which the simulation has to find.
    pub planted: Option<Planted>,
}

impl SimConfig {
    /// Returns the parameters of a seed without limits.
    pub fn for_seed(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) is_settled: bool,
    /// Delay of the start request.
    pub(crate) after: Duration,
    /// Delay of the cancel request after the start.
    pub(crate) cancel: Option<Duration>,
    /// Number of repeated start requests.
    pub(crate) repeats: u64,
}

/// Setup of a simulation before it runs.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) config: SimConfig,
    pub(crate) seats: usize,
    /// Whether several processes share the database.
    pub(crate) shared: bool,
    pub(crate) slots: usize,
    pub(crate) workers: usize,
    pub(crate) cache_bytes: usize,
    /// Database calls per fault, on average.
    pub(crate) calls_per_fault: u64,
    /// Simulated time during which faults happen.
    pub(crate) trouble: Duration,
    pub(crate) documents: Vec<Document>,
    pub(crate) asked: Vec<Asked>,
}

impl Plan {
    pub(crate) fn new(config: SimConfig) -> Self {
        let mut chance = Chance::new(config.seed, "plan");
        let seats = usize::try_from(chance.between(1, 3)).unwrap_or(1);
        let shared = seats > 1 || chance.one_in(3);
        let slots = usize::try_from(chance.below(5)).unwrap_or(0);
        let least = u64::from(slots == 0);
        let workers = usize::try_from(chance.between(least, 3)).unwrap_or(1);
        let cache_bytes = if chance.one_in(4) { 1 } else { 1 << 20 };
        let calls_per_fault = *chance.pick(&[12, 25, 60, 150, 400]).unwrap_or(&60);
        let trouble = Duration::from_secs(chance.between(20, 240));
        let count = chance.between(1, 3);
        let documents = documents(&mut Chance::new(config.seed, "playbooks"), count);
        let mut asks = Chance::new(config.seed, "asks");
        let starts = asks.between(1, 6);
        let mut asked: Vec<Asked> = (0..starts)
            .map(|_| {
                let index = usize::try_from(asks.below(count)).unwrap_or(0);
                let document = &documents[2 + index];
                let is_settled = document.is_settled;
                let cancels = asks.one_in(3) && !is_settled;
                Asked {
                    path: document.path.clone(),
                    is_settled,
                    after: Duration::from_millis(asks.below(20_000)),
                    cancel: cancels.then(|| Duration::from_millis(asks.below(40_000))),
                    repeats: asks.below(3),
                }
            })
            .collect();
        asked.truncate(config.executions.unwrap_or(usize::MAX));
        Self {
            config,
            seats,
            shared,
            slots,
            workers,
            cache_bytes,
            calls_per_fault,
            trouble,
            documents,
            asked,
        }
    }

    /// Returns this plan without faults and defects.
    pub(crate) fn without_faults(&self) -> Self {
        let config = SimConfig { faults: Some(0), planted: None, ..self.config.clone() };
        Self { config, ..self.clone() }
    }

    /// Describes the plan in one line.
    pub(crate) fn summary(&self) -> String {
        let store = if self.shared { "a shared" } else { "its own" };
        format!(
            "{} process(es) on {store} database, {} slot(s) each, {} remote worker(s), \
             {} execution(s), a fault in {} calls for {} s",
            self.seats,
            self.slots,
            self.workers,
            self.asked.len(),
            self.calls_per_fault,
            self.trouble.as_secs()
        )
    }
}
