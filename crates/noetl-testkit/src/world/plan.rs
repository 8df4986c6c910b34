//! What a seed stands for: who is there, what runs, and how often what goes wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use super::chance::Chance;
use super::fault::Fault;
use super::planted::Planted;
use super::playbooks::{Document, documents};

/// Which world to run.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The seed.
    pub seed: u64,
    /// No more faults than this.
    pub faults: Option<u64>,
    /// No more executions than this are started.
    pub executions: Option<usize>,
    /// Faults that do not happen.
    pub without: BTreeSet<Fault>,
    /// A defect it has.
    pub planted: Option<Planted>,
}

impl Wish {
    /// The world of a seed.
    pub fn of(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }
}

/// One execution to be started.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) is_settled: bool,
    /// When it is asked for.
    pub(crate) after: Duration,
    /// When it is asked to stop, after that.
    pub(crate) cancel: Option<Duration>,
    /// How often it is asked for once it was.
    pub(crate) repeats: u64,
}

/// Everything that follows from a seed before anything runs.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) wish: Wish,
    pub(crate) seats: usize,
    /// Whether the database is one that several processes share.
    pub(crate) shared: bool,
    pub(crate) slots: usize,
    pub(crate) workers: usize,
    pub(crate) cache_bytes: usize,
    /// Of so many calls one goes wrong.
    pub(crate) calls_per_fault: u64,
    /// For how long things go wrong.
    pub(crate) trouble: Duration,
    pub(crate) documents: Vec<Document>,
    pub(crate) asked: Vec<Asked>,
}

impl Plan {
    pub(crate) fn new(wish: Wish) -> Self {
        let mut chance = Chance::new(wish.seed, "plan");
        let seats = usize::try_from(chance.between(1, 3)).unwrap_or(1);
        let shared = seats > 1 || chance.one_in(3);
        let slots = usize::try_from(chance.below(5)).unwrap_or(0);
        let least = u64::from(slots == 0);
        let workers = usize::try_from(chance.between(least, 3)).unwrap_or(1);
        let cache_bytes = if chance.one_in(4) { 1 } else { 1 << 20 };
        let calls_per_fault = *chance.pick(&[12, 25, 60, 150, 400]).unwrap_or(&60);
        let trouble = Duration::from_secs(chance.between(20, 240));
        let count = chance.between(1, 3);
        let documents = documents(&mut Chance::new(wish.seed, "playbooks"), count);
        let mut asks = Chance::new(wish.seed, "asks");
        let starts = asks.between(1, 6);
        let mut asked: Vec<Asked> = (0..starts)
            .map(|_| {
                let place = usize::try_from(asks.below(count)).unwrap_or(0);
                let document = &documents[2 + place];
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
        asked.truncate(wish.executions.unwrap_or(usize::MAX));
        Self {
            wish,
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

    /// The same with nothing going wrong.
    pub(crate) fn calm(&self) -> Self {
        let wish = Wish { faults: Some(0), planted: None, ..self.wish.clone() };
        Self { wish, ..self.clone() }
    }

    /// In a few words.
    pub(crate) fn in_words(&self) -> String {
        let store = if self.shared { "a shared" } else { "its own" };
        format!(
            "{} process(es) on {store} database, {} slot(s) each, {} worker(s) elsewhere, \
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
