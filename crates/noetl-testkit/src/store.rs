//! A store that a test can make unreachable.

mod holdings;
mod keeping;
mod retention;
mod secrets;
mod traffic;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::row::EventRow;
use noetl_model::{CatalogId, CommandId, Event, EventId, ExecutionId, Seq, Tenant, Timestamp};
use noetl_store::{
    Append, Catalog, CatalogEntry, CatalogHead, CatalogVersion, CommandRow, Commands, Committed,
    EventLog, ExecutionFilter, ExecutionRow, ExecutionStatus, Executions, Held, Import,
    ImportOutcome, Imports, MemoryStore, NewEntry, Store, StoreError, Unshared, Until, Wanted,
};
use tokio::sync::watch;

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
    commits: AtomicUsize,
    row_reads: AtomicUsize,
    command_looks: AtomicUsize,
    faults: Mutex<BTreeMap<usize, CommitFault>>,
    /// From which commit on they are under way without an end, if any are.
    holds: watch::Sender<Option<usize>>,
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

    pub(crate) fn at(place: Place) -> Self {
        Self {
            inner: place.store,
            is_down: AtomicBool::default(),
            no_audit: AtomicBool::new(false),
            commits: AtomicUsize::default(),
            row_reads: AtomicUsize::default(),
            command_looks: AtomicUsize::default(),
            faults: Mutex::default(),
            holds: watch::Sender::default(),
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
        self.inner.is_shared()
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn Held + '_>, StoreError> {
        self.answer()?;
        Ok(Box::new(Unshared::new(self, execution)))
    }

    async fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.answer()?;
        self.inner.read(execution, after, limit).await
    }

    async fn read_rows(
        &self,
        execution: ExecutionId,
        after: Option<EventId>,
        until: Until,
        limit: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.answer()?;
        self.row_reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read_rows(execution, after, until, limit).await
    }

    async fn least_id_since(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> Result<Option<EventId>, StoreError> {
        self.answer()?;
        self.inner.least_id_since(execution, after).await
    }

    async fn find_event(
        &self,
        execution: ExecutionId,
        event: EventId,
    ) -> Result<Option<Seq>, StoreError> {
        self.answer()?;
        self.inner.find_event(execution, event).await
    }

    async fn newest_id(&self) -> Result<Option<EventId>, StoreError> {
        self.answer()?;
        self.inner.newest_id().await
    }
}

#[async_trait]
impl Imports for FrailStore {
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError> {
        self.answer()?;
        self.inner.import(rows).await
    }

    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        self.answer()?;
        self.inner.imported(executions).await
    }
}

#[async_trait]
impl Executions for FrailStore {
    async fn execution(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
    ) -> Result<Option<ExecutionRow>, StoreError> {
        self.answer()?;
        self.inner.execution(tenant, id).await
    }

    async fn tenant_of(&self, id: ExecutionId) -> Result<Option<Tenant>, StoreError> {
        self.answer()?;
        self.inner.tenant_of(id).await
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
    ) -> Result<Vec<ExecutionRow>, StoreError> {
        self.answer()?;
        self.inner.executions(tenant, filter).await
    }

    async fn executions_by_status(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(ExecutionStatus, u64)>, StoreError> {
        self.answer()?;
        self.inner.executions_by_status(tenant).await
    }

    async fn every_execution(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<(Tenant, ExecutionRow)>, StoreError> {
        self.answer()?;
        self.inner.every_execution(after, limit).await
    }

    async fn unfinished(
        &self,
        after: ExecutionId,
        limit: usize,
    ) -> Result<Vec<ExecutionId>, StoreError> {
        self.answer()?;
        self.inner.unfinished(after, limit).await
    }
}

#[async_trait]
impl Commands for FrailStore {
    async fn command(&self, id: CommandId) -> Result<Option<CommandRow>, StoreError> {
        self.answer()?;
        self.inner.command(id).await
    }

    async fn open_commands(
        &self,
        after: CommandId,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        self.answer()?;
        self.command_looks.fetch_add(1, Ordering::SeqCst);
        self.inner.open_commands(after, limit).await
    }

    async fn pending_commands(
        &self,
        wanted: &Wanted,
        limit: usize,
    ) -> Result<Vec<CommandRow>, StoreError> {
        self.answer()?;
        self.inner.pending_commands(wanted, limit).await
    }

    async fn pending_by_pool(&self) -> Result<Vec<(Arc<str>, u64)>, StoreError> {
        self.answer()?;
        self.command_looks.fetch_add(1, Ordering::SeqCst);
        self.inner.pending_by_pool().await
    }
}

#[async_trait]
impl Catalog for FrailStore {
    async fn register(&self, tenant: &Tenant, entry: NewEntry) -> Result<CatalogEntry, StoreError> {
        self.answer()?;
        self.inner.register(tenant, entry).await
    }

    async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        self.answer()?;
        self.inner.entry(tenant, id).await
    }

    async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        self.answer()?;
        self.inner.entry_at(tenant, path, version).await
    }

    async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        self.answer()?;
        self.inner.entries(tenant, kind).await
    }

    async fn newest_of(&self, tenant: &Tenant, kind: &str) -> Result<Vec<CatalogHead>, StoreError> {
        self.answer()?;
        self.inner.newest_of(tenant, kind).await
    }

    async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        self.answer()?;
        self.inner.versions(tenant, path).await
    }

    async fn set_deleted(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        self.answer()?;
        self.inner.set_deleted(tenant, path, version, at).await
    }
}
