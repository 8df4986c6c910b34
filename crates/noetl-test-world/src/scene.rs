//! Shared state of a simulation: the database, the bus, time, randomness, and live processes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt;
use noetl_bus::MemoryStream;
use noetl_control::ControlPlane;
use noetl_model::{Clock, ExecutionId, Timestamp};
use noetl_store::{Append, Committed, EventLog, MemoryStore, StoreClock, StoreError};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::chance::Chance;
use super::fault::Fault;
use super::lock::lock;
use super::observer::Observer;
use super::plan::Plan;
use super::planted::{Defect, StreamDefect};
use super::stream::Stream;

/// Start of simulated time in milliseconds: late enough for every ID layout.
const BEGINNING: i64 = 1_767_225_600_000;

/// Clock of the simulation. The database shows it exactly, processes with an error.
pub(crate) struct WorldClock {
    began: Instant,
    /// Error of the clock in microseconds; positive is ahead.
    ahead: Mutex<i64>,
}

impl WorldClock {
    fn new(began: Instant) -> Self {
        Self { began, ahead: Mutex::default() }
    }

    pub(crate) fn jump(&self, micros: i64) {
        *lock(&self.ahead) += micros;
    }
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(BEGINNING * 1000 + elapsed + *lock(&self.ahead))
    }
}

/// State of a process from start to end.
pub(crate) struct Life {
    pub(crate) seat: usize,
    pub(crate) is_over: bool,
    pub(crate) frozen_until: Option<Instant>,
    pub(crate) clock: Arc<WorldClock>,
    /// Control plane, while the process serves requests.
    pub(crate) control: Option<Arc<ControlPlane>>,
}

/// Mutable state of a simulation.
pub(crate) struct Changing {
    faults: Chance,
    pub(crate) counts: BTreeMap<Fault, u64>,
    pub(crate) lives: BTreeMap<u64, Life>,
    outage_until: Option<Instant>,
    locks: BTreeMap<ExecutionId, u64>,
    pub(crate) defect: Option<Defect>,
    pub(crate) observer: Observer,
    pub(crate) transcript: Vec<String>,
    /// Executions returned for each start, by its number.
    pub(crate) started: BTreeMap<usize, BTreeSet<ExecutionId>>,
    /// Numbers of the starts with a cancel request.
    pub(crate) cancelled: BTreeSet<usize>,
}

/// State that all actors of a simulation share.
pub(crate) struct Scene {
    pub(crate) plan: Plan,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) bus: Arc<MemoryStream>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) clock: Arc<WorldClock>,
    began: Instant,
    changing: Mutex<Changing>,
    /// Signals the death of a process and the release of an execution.
    moved: Notify,
    /// Counts announcements of released work between processes.
    pub(crate) words: watch::Sender<u64>,
    lives: Mutex<u64>,
}

impl Scene {
    pub(crate) fn new(plan: Plan) -> Self {
        let began = Instant::now();
        let clock = Arc::new(WorldClock::new(began));
        let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
        let seed = plan.config.seed;
        let changing = Changing {
            faults: Chance::new(seed, "faults"),
            counts: BTreeMap::new(),
            lives: BTreeMap::new(),
            outage_until: None,
            locks: BTreeMap::new(),
            defect: plan.config.planted.map(|planted| Defect::new(planted, seed)),
            observer: Observer::default(),
            transcript: Vec::new(),
            started: BTreeMap::new(),
            cancelled: BTreeSet::new(),
        };
        let bus = Arc::new(MemoryStream::new());
        let defect = plan.config.planted.and_then(|planted| StreamDefect::new(planted, seed));
        Self {
            plan,
            store: Arc::new(store),
            stream: Arc::new(Stream::new(bus.clone(), defect)),
            bus,
            clock,
            began,
            changing: Mutex::new(changing),
            moved: Notify::new(),
            words: watch::Sender::new(0),
            lives: Mutex::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Changing> {
        lock(&self.changing)
    }

    pub(crate) fn note(&self, who: &str, what: &str) {
        let at = self.began.elapsed();
        self.lock().transcript.push(format!("{:>10.3} {who:<8} {what}", at.as_secs_f64()));
    }

    /// Returns the number of faults so far.
    pub(crate) fn faults(&self) -> u64 {
        self.lock().counts.values().sum()
    }

    /// Returns `true` while faults happen.
    pub(crate) fn is_troubled(&self) -> bool {
        let is_early = self.began.elapsed() < self.plan.trouble;
        is_early && self.plan.config.faults.is_none_or(|most| self.faults() < most)
    }

    /// Draws one of these faults or, in most cases, none.
    pub(crate) fn fault(&self, who: &str, among: &[Fault]) -> Option<Fault> {
        self.fault_in(who, among, self.plan.calls_per_fault)
    }

    /// Draws one of these faults once in `cases`.
    pub(crate) fn fault_in(&self, who: &str, among: &[Fault], cases: u64) -> Option<Fault> {
        let is_troubled = self.is_troubled();
        let fault = {
            let mut changing = self.lock();
            // Drawn in any case, so that leaving out one kind does not move the others.
            let comes = changing.faults.one_in(cases);
            let fault = changing.faults.pick(among).copied();
            fault.filter(|fault| comes && !self.plan.config.without.contains(fault))?
        };
        if !is_troubled {
            return None;
        }
        *self.lock().counts.entry(fault).or_default() += 1;
        self.note(who, &format!("! {fault}"));
        Some(fault)
    }

    /// Draws a number that is not a fault by itself, such as a duration.
    pub(crate) fn between(&self, first: u64, last: u64) -> u64 {
        self.lock().faults.between(first, last)
    }

    pub(crate) fn millis(&self, first: u64, last: u64) -> Duration {
        Duration::from_millis(self.between(first, last))
    }

    pub(crate) fn begin_life(&self, seat: usize) -> u64 {
        let mut lives = lock(&self.lives);
        *lives += 1;
        let clock = Arc::new(WorldClock::new(self.began));
        let life = Life { seat, is_over: false, frozen_until: None, clock, control: None };
        self.lock().lives.insert(*lives, life);
        *lives
    }

    /// Kills a process: its pending calls never return.
    pub(crate) fn end_life(&self, life: u64) {
        {
            let mut changing = self.lock();
            if let Some(life) = changing.lives.get_mut(&life) {
                life.is_over = true;
                life.control = None;
            }
            // The database releases the locks of a lost connection.
            changing.locks.retain(|_, holder| *holder != life);
        }
        self.moved.notify_waiters();
    }

    /// Waits until a process is dead.
    pub(crate) async fn dead(&self, life: u64) {
        loop {
            let moved = self.moved.notified();
            if self.lock().lives.get(&life).is_none_or(|life| life.is_over) {
                return;
            }
            moved.await;
        }
    }

    /// Returns the end of the freeze of a live process, or `None` for a dead one.
    fn alive(&self, life: u64) -> Option<Option<Instant>> {
        let changing = self.lock();
        let alive = changing.lives.get(&life).filter(|life| !life.is_over);
        alive.map(|life| life.frozen_until)
    }

    /// Waits until a process is not frozen; forever if it is dead.
    pub(crate) async fn gate(&self, life: u64) {
        loop {
            let alive = self.alive(life);
            let Some(frozen) = alive else { return std::future::pending().await };
            match frozen.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return,
            }
        }
    }

    pub(crate) fn freeze(&self, life: u64, lasts: Duration) {
        if let Some(life) = self.lock().lives.get_mut(&life) {
            life.frozen_until = Some(Instant::now() + lasts);
        }
    }

    pub(crate) fn set_outage(&self, lasts: Duration) {
        self.lock().outage_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn is_away(&self) -> bool {
        self.lock().outage_until.is_some_and(|until| until > Instant::now())
    }

    /// Picks one of the processes that serve requests.
    pub(crate) fn some_control(&self) -> Option<(usize, Arc<ControlPlane>)> {
        let mut changing = self.lock();
        let answering: Vec<(usize, Arc<ControlPlane>)> = changing
            .lives
            .values()
            .filter_map(|life| Some((life.seat, life.control.clone()?)))
            .collect();
        changing.faults.pick(&answering).cloned()
    }

    /// Locks an execution for one process, once it is unlocked.
    pub(crate) async fn hold(&self, execution: ExecutionId, life: u64) {
        loop {
            let moved = self.moved.notified();
            {
                let mut changing = self.lock();
                if let Entry::Vacant(free) = changing.locks.entry(execution) {
                    free.insert(life);
                    return;
                }
            }
            moved.await;
        }
    }

    pub(crate) fn let_go(&self, execution: ExecutionId, life: u64) {
        {
            let mut changing = self.lock();
            if changing.locks.get(&execution) == Some(&life) {
                changing.locks.remove(&execution);
            }
        }
        self.moved.notify_waiters();
    }

    /// Waits until none of these executions is locked.
    pub(crate) async fn unlocked(&self, batch: &[Append]) {
        loop {
            let moved = self.moved.notified();
            let is_locked = {
                let changing = self.lock();
                batch.iter().any(|append| changing.locks.contains_key(&append.row.id))
            };
            if !is_locked {
                return;
            }
            moved.await;
        }
    }

    /// Writes a batch and lets the observer check it.
    pub(crate) fn write(
        &self,
        who: &str,
        batch: Vec<Append>,
    ) -> Result<Vec<Committed>, StoreError> {
        let meant = batch.clone();
        let batch = match &mut self.lock().defect {
            Some(defect) => defect.batch(batch),
            None => Some(batch),
        };
        let Some(batch) = batch else { return Ok(vec![Committed::Appended; meant.len()]) };
        let written = batch.clone();
        let answer = self.store.commit(batch).now_or_never();
        let mut outcomes = answer.expect("the memory store never waits")?;
        for (append, outcome) in written.iter().zip(&outcomes) {
            if *outcome == Committed::Appended {
                let words = self.lock().observer.appended(append, self.clock.now(), &self.store);
                self.note(who, &words);
            }
        }
        if let Some(defect) = &mut self.lock().defect {
            defect.outcomes(&mut outcomes);
        }
        Ok(outcomes)
    }

    /// Records a violation. The first one counts.
    pub(crate) fn wrong(&self, message: String) {
        self.lock().observer.wrong(message);
    }

    pub(crate) fn is_wrong(&self) -> bool {
        self.lock().observer.first_wrong.is_some()
    }
}
