//! A store that fails or blocks calls on request of a test.

mod auxiliary;
mod coordination;
mod interceptor;
mod leases;
mod retention;
mod rows;
mod secrets;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Seq};
use noetl_store::{
    Append, Committed, EventLog, LockedLog, MemoryStore, ReadBound, Store, StoreError, UnsharedLog,
};
use tokio::sync::watch;

pub use self::interceptor::CallInterceptor;
use crate::backend::Backend;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// The store rejects the commit and writes nothing.
    Refused,
    /// The store writes the commit, and the caller gets no response.
    AnswerLost,
    /// The store writes nothing, and the caller gets no response.
    Lost,
}

/// A store in front of another one, in memory by default. It fails every call while it is down, and
/// fails or blocks the commits that a test names.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    is_down: AtomicBool,
    no_audit: AtomicBool,
    is_shared: AtomicBool,
    /// Whether appends of log lines block.
    pub(crate) blocks_lines: watch::Sender<bool>,
    commits: AtomicUsize,
    row_reads: AtomicUsize,
    command_scans: AtomicUsize,
    faults: Mutex<BTreeMap<usize, CommitFault>>,
    /// Number of the first commit that blocks, if any does.
    blocks: watch::Sender<Option<usize>>,
    /// Interceptor of calls to the inner store.
    interceptor: Option<Arc<dyn CallInterceptor>>,
    /// Resource that has to outlive the inner store.
    _resource: Option<Box<dyn Any + Send + Sync>>,
}

impl Default for FaultyStore {
    fn default() -> Self {
        Self::over(Arc::new(MemoryStore::new()))
    }
}

impl FaultyStore {
    /// Creates a store in front of `inner`.
    pub fn over(inner: Arc<dyn Store>) -> Self {
        Self::new(Backend { store: inner, resource: None })
    }

    /// Creates a store in front of `inner` whose calls pass an interceptor.
    pub fn with_interceptor(inner: Arc<dyn Store>, interceptor: Arc<dyn CallInterceptor>) -> Self {
        Self { interceptor: Some(interceptor), ..Self::over(inner) }
    }

    pub(crate) fn new(backend: Backend) -> Self {
        Self {
            inner: backend.store,
            is_down: AtomicBool::default(),
            no_audit: AtomicBool::new(false),
            is_shared: AtomicBool::default(),
            blocks_lines: watch::Sender::default(),
            commits: AtomicUsize::default(),
            row_reads: AtomicUsize::default(),
            command_scans: AtomicUsize::default(),
            faults: Mutex::default(),
            blocks: watch::Sender::default(),
            interceptor: None,
            _resource: backend.resource,
        }
    }

    /// Makes records of secret uses fail, or succeed again.
    pub fn set_no_audit(&self, no_audit: bool) {
        self.no_audit.store(no_audit, Ordering::SeqCst);
    }

    /// Makes the store unavailable, or available again. Stored data stays.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Makes the store report that other processes share it.
    pub fn set_shared(&self) {
        self.is_shared.store(true, Ordering::SeqCst);
    }

    /// Blocks appends of log lines, or unblocks them.
    pub fn block_lines(&self, blocks: bool) {
        self.blocks_lines.send_replace(blocks);
    }

    /// Blocks commits, or unblocks them.
    pub fn block_commits(&self, blocks: bool) {
        self.blocks.send_replace(blocks.then_some(0));
    }

    /// Blocks the commit with this number, counted from 1, and those after it.
    pub fn block_commits_from(&self, number: usize) {
        self.blocks.send_replace(Some(number));
    }

    /// Makes the commit with this number, counted from 1, fail.
    pub fn fail_commit(&self, number: usize, fault: CommitFault) {
        self.faults.lock().expect("no test panics while it holds this").insert(number, fault);
    }

    /// Returns the number of commits requested so far.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// Returns the number of row pages requested so far.
    pub fn row_reads(&self) -> usize {
        self.row_reads.load(Ordering::SeqCst)
    }

    /// Returns the number of requests for open commands or for the counts of pending ones.
    pub fn command_scans(&self) -> usize {
        self.command_scans.load(Ordering::SeqCst)
    }

    /// Counts a call and passes it to the interceptor, if the store is up.
    async fn before_call(&self, method: &'static str) -> Result<(), StoreError> {
        match method {
            "read_rows" => self.row_reads.fetch_add(1, Ordering::SeqCst),
            "open_commands" | "pending_by_pool" => {
                self.command_scans.fetch_add(1, Ordering::SeqCst)
            }
            _ => 0,
        };
        self.check_up()?;
        match &self.interceptor {
            Some(interceptor) => interceptor.before_call(method).await,
            None => Ok(()),
        }
    }

    /// Passes a response of the inner store to the interceptor.
    async fn after_call<R: Any + Send>(
        &self,
        method: &'static str,
        response: &mut R,
    ) -> Result<(), StoreError> {
        match &self.interceptor {
            Some(interceptor) => interceptor.after_call(method, response).await,
            None => Ok(()),
        }
    }

    fn check_up(&self) -> Result<(), StoreError> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(StoreError::backend("answer", "a secret of the driver: down for a test")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl EventLog for FaultyStore {
    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        self.check_up()?;
        if let Some(interceptor) = &self.interceptor {
            return interceptor.commit(batch).await;
        }
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.faults.lock().expect("no test panics while it holds this").remove(&number);
        // The store owns the sender, so it outlives this call.
        let _ =
            self.blocks.subscribe().wait_for(|from| from.is_none_or(|from| number < from)).await;
        match fault {
            None => self.inner.commit(batch).await,
            Some(CommitFault::Refused) => Err(StoreError::backend("commit", "refused for a test")),
            Some(CommitFault::Lost) => Err(StoreError::Unknown("lost for a test".into())),
            Some(CommitFault::AnswerLost) => {
                self.inner.commit(batch).await?;
                Err(StoreError::Unknown("written without a response for a test".into()))
            }
        }
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::SeqCst) || self.inner.is_shared()
    }

    async fn wait_for_released_work(&self) {
        match &self.interceptor {
            Some(interceptor) => interceptor.others_left_work().await,
            None => self.inner.wait_for_released_work().await,
        }
    }

    async fn notify_released_work(&self) -> Result<(), StoreError> {
        self.before_call("say_work_left").await?;
        let mut response = self.inner.notify_released_work().await?;
        self.after_call("say_work_left", &mut response).await?;
        Ok(response)
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        self.before_call("hold").await?;
        match &self.interceptor {
            Some(interceptor) => interceptor.hold(execution).await,
            None => Ok(Box::new(UnsharedLog::new(self, execution))),
        }
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.before_call("read").await?;
        let mut response = self.inner.read(execution, after, limit).await?;
        self.after_call("read", &mut response).await?;
        Ok(response)
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: ReadBound,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.before_call("read_rows").await?;
        let mut response = self.inner.read_rows(execution, after, until, limit).await?;
        self.after_call("read_rows", &mut response).await?;
        Ok(response)
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        self.before_call("least_id_since").await?;
        let mut response = self.inner.least_id_since(execution, after).await?;
        self.after_call("least_id_since", &mut response).await?;
        Ok(response)
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        self.before_call("find_event").await?;
        let mut response = self.inner.find_event(execution, event).await?;
        self.after_call("find_event", &mut response).await?;
        Ok(response)
    }

    async fn find_events(
        &self,
        execution: ExecutionId,
        events: &[EventId],
    ) -> Result<HashSet<EventId>, StoreError> {
        self.before_call("find_events").await?;
        let mut response = self.inner.find_events(execution, events).await?;
        self.after_call("find_events", &mut response).await?;
        Ok(response)
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        self.before_call("newest_id").await?;
        let mut response = self.inner.newest_id().await?;
        self.after_call("newest_id", &mut response).await?;
        Ok(response)
    }
}
