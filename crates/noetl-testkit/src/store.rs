//! A store that a test can make unreachable.

mod holdings;
mod keeping;
mod line;
mod retention;
mod rows;
mod secrets;
mod traffic;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq};
use noetl_store::{
    Append, Committed, EventLog, Held, MemoryStore, Store, StoreError, Unshared, Until,
};
use tokio::sync::watch;

pub use self::line::Line;
use crate::place::Place;

/// How a commit goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// It is refused and nothing is kept.
    Refused,
    /// It is kept, and its answer is lost.
    AnswerLost,
    /// It is not kept, and its answer is lost.
    Lost,
}

/// Keeps everything in memory unless told otherwise, answers nothing while it is down, and fails the commits it is told
/// to fail.
pub struct FrailStore {
    inner: Arc<dyn Store>,
    is_down: AtomicBool,
    no_audit: AtomicBool,
    is_shared: AtomicBool,
    /// Whether lines are under way without an end.
    pub(crate) holds_lines: watch::Sender<bool>,
    commits: AtomicUsize,
    row_reads: AtomicUsize,
    command_looks: AtomicUsize,
    faults: Mutex<BTreeMap<usize, CommitFault>>,
    /// From which commit on they are under way without an end, if any are.
    holds: watch::Sender<Option<usize>>,
    /// What stands between its callers and the store inside, if anything does.
    line: Option<Arc<dyn Line>>,
    /// What has to live as long as the store inside.
    _place: Option<Box<dyn Any + Send + Sync>>,
}

impl Default for FrailStore {
    fn default() -> Self {
        Self::over(Arc::new(MemoryStore::new()))
    }
}

impl FrailStore {
    /// One that keeps everything in another store.
    pub fn over(inner: Arc<dyn Store>) -> Self {
        Self::at(Place { store: inner, holds: None })
    }

    /// One whose calls go over a line to the store inside.
    pub fn through(inner: Arc<dyn Store>, line: Arc<dyn Line>) -> Self {
        Self { line: Some(line), ..Self::over(inner) }
    }

    pub(crate) fn at(place: Place) -> Self {
        Self {
            inner: place.store,
            is_down: AtomicBool::default(),
            no_audit: AtomicBool::new(false),
            is_shared: AtomicBool::default(),
            holds_lines: watch::Sender::default(),
            commits: AtomicUsize::default(),
            row_reads: AtomicUsize::default(),
            command_looks: AtomicUsize::default(),
            faults: Mutex::default(),
            holds: watch::Sender::default(),
            line: None,
            _place: place.holds,
        }
    }

    /// Whether nothing can be added to the audit of secrets.
    pub fn set_no_audit(&self, no_audit: bool) {
        self.no_audit.store(no_audit, Ordering::SeqCst);
    }

    /// Makes it unreachable, or reachable again. What it holds stays.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Makes it one that other processes may share, as far as it says.
    pub fn set_shared(&self) {
        self.is_shared.store(true, Ordering::SeqCst);
    }

    /// Lets lines be under way without an end, or lets them be kept.
    pub fn hold_lines(&self, holds: bool) {
        self.holds_lines.send_replace(holds);
    }

    /// Lets commits be under way without an end, or lets them end.
    pub fn hold_commits(&self, holds: bool) {
        self.holds.send_replace(holds.then_some(0));
    }

    /// Lets the commit with this number, from 1, and those after it be under way without an end.
    pub fn hold_commits_from(&self, number: usize) {
        self.holds.send_replace(Some(number));
    }

    /// Makes the commit with this number, from 1, go wrong.
    pub fn fail_commit(&self, number: usize, fault: CommitFault) {
        self.faults.lock().expect("no test panics while it holds this").insert(number, fault);
    }

    /// How many commits were asked for.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// How many pages of rows were asked for.
    pub fn row_reads(&self) -> usize {
        self.row_reads.load(Ordering::SeqCst)
    }

    /// How often it was asked which commands are open, or how many wait.
    pub fn command_looks(&self) -> usize {
        self.command_looks.load(Ordering::SeqCst)
    }

    /// Lets a call through to the store inside, if it is to get there.
    async fn asks(&self, what: &'static str) -> Result<(), StoreError> {
        match what {
            "read_rows" => self.row_reads.fetch_add(1, Ordering::SeqCst),
            "open_commands" | "pending_by_pool" => {
                self.command_looks.fetch_add(1, Ordering::SeqCst)
            }
            _ => 0,
        };
        self.answer()?;
        match &self.line {
            Some(line) => line.asks(what).await,
            None => Ok(()),
        }
    }

    /// Lets an answer of the store inside through to whoever asked.
    async fn answered<A: Any + Send>(
        &self,
        what: &'static str,
        answer: &mut A,
    ) -> Result<(), StoreError> {
        match &self.line {
            Some(line) => line.answered(what, answer).await,
            None => Ok(()),
        }
    }

    fn answer(&self) -> Result<(), StoreError> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(StoreError::backend("answer", "a secret of the driver: down for a test")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl EventLog for FrailStore {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        self.answer()?;
        if let Some(line) = &self.line {
            return line.commit(batch).await;
        }
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.faults.lock().expect("no test panics while it holds this").remove(&number);
        // The sender is this store's own, so it is there as long as this call.
        let _ = self.holds.subscribe().wait_for(|from| from.is_none_or(|from| number < from)).await;
        match fault {
            None => self.inner.commit(batch).await,
            Some(CommitFault::Refused) => Err(StoreError::backend("commit", "refused for a test")),
            Some(CommitFault::Lost) => Err(StoreError::Unknown("lost for a test".into())),
            Some(CommitFault::AnswerLost) => {
                self.inner.commit(batch).await?;
                Err(StoreError::Unknown("kept, but not said, for a test".into()))
            }
        }
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::SeqCst) || self.inner.is_shared()
    }

    async fn others_left_work(&self) {
        match &self.line {
            Some(line) => line.others_left_work().await,
            None => self.inner.others_left_work().await,
        }
    }

    async fn say_work_left(&self) -> Result<(), StoreError> {
        self.asks("say_work_left").await?;
        let mut answer = self.inner.say_work_left().await?;
        self.answered("say_work_left", &mut answer).await?;
        Ok(answer)
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn Held + '_>, StoreError> {
        self.asks("hold").await?;
        match &self.line {
            Some(line) => line.hold(execution).await,
            None => Ok(Box::new(Unshared::new(self, execution))),
        }
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.asks("read").await?;
        let mut answer = self.inner.read(execution, after, limit).await?;
        self.answered("read", &mut answer).await?;
        Ok(answer)
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: Until,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.asks("read_rows").await?;
        let mut answer = self.inner.read_rows(execution, after, until, limit).await?;
        self.answered("read_rows", &mut answer).await?;
        Ok(answer)
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        self.asks("least_id_since").await?;
        let mut answer = self.inner.least_id_since(execution, after).await?;
        self.answered("least_id_since", &mut answer).await?;
        Ok(answer)
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        self.asks("find_event").await?;
        let mut answer = self.inner.find_event(execution, event).await?;
        self.answered("find_event", &mut answer).await?;
        Ok(answer)
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        self.asks("newest_id").await?;
        let mut answer = self.inner.newest_id().await?;
        self.answered("newest_id", &mut answer).await?;
        Ok(answer)
    }
}
