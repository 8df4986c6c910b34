//! The writer loop: decides queued inputs in batches and commits them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use lru::LruCache;
use noetl_catalog::Playbooks;
use noetl_engine::{Execution, ExecutionLimits, Input, Rejection, Status};
use noetl_identity::{IdGenerator, ProcessIdentity};
use noetl_model::{Clock, EventId, ExecutionId};
use noetl_results::ResultStorage;
use noetl_store::{Committed, JournalStore, StartAppend, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, BatchItem, DecisionResult, Reply, SealedBatch, UncommittedItem};
use super::contention::{ContendedExecutions, ContendedInputs};
use super::decide::decide_on;
use super::handoff::Offers;
use super::in_flight::InFlight;
use super::retry::report_id;
use super::{LeaseHolder, QueuedInput, SubmitError, handoff, load};
use crate::assignment::CommandAssignment;
use crate::dispatch::{Dispatcher, PendingCommand};
use crate::metrics::Metrics;
use crate::notifications::Notifications;
use crate::snapshots::SnapshotQueue;
use crate::state_cache::{CachedState, StateCache};
use crate::traces::Traces;
use crate::watch::CommitWatch;

/// Inputs decided per transaction. Large enough to spread an fsync over many inputs, small enough
/// that the first input of a batch does not wait long for the last.
const BATCH_MAX: usize = 512;

/// Commits in flight at a time. Enough that the store never waits for the next one, few enough that
/// little is decided on states that may not be committed.
const COMMITS_MAX: usize = 8;

/// Pause after a store failure, so the writer does not retry against a full disk in a tight loop.
pub(super) const STORE_REST: Duration = Duration::from_millis(200);

/// Report IDs remembered for deduplication: more than can be in flight to the writer at a time.
const REPORTED_MAX: NonZeroUsize = NonZeroUsize::new(16 * 1024).expect("not zero");

pub(crate) struct WriterDeps {
    pub(crate) store: Arc<dyn JournalStore>,
    pub(crate) shard: usize,
    /// Database that stores the catalog.
    pub(crate) catalog: Arc<dyn JournalStore>,
    pub(crate) results: ResultStorage,
    pub(crate) snapshots: SnapshotQueue,
    pub(crate) identity: ProcessIdentity,
    pub(crate) due_written: Arc<Notify>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
    pub(crate) playbooks: Playbooks,
    pub(crate) dispatch: Dispatcher,
    pub(crate) watch: CommitWatch,
    pub(crate) env: Arc<BTreeMap<String, String>>,
    pub(crate) caps: ExecutionLimits,
    /// Decides which events of a playbook create notifications.
    pub(crate) notify: Notifications,
    pub(crate) traces: Traces,
    pub(crate) assignments: mpsc::Sender<CommandAssignment>,
    pub(crate) cache_bytes: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) closing: CancellationToken,
}

/// Decides and commits the inputs of one store. The only writer of that store in this process, so
/// its execution states need no locks.
///
/// While a batch commits, the writer decides the next batch on the speculative states that the
/// first leaves behind. The store commits batches in the order submitted and checks every append
/// against the event log. If a batch is not committed, the writer drops its states. Later batches
/// that were decided on those states then conflict with the log and are not committed either.
pub(crate) struct JournalWriter {
    pub(super) parts: WriterDeps,
    pub(super) cache: StateCache,
    /// Executions of an unconfirmed commit. If it succeeded after all, the commands it issued and
    /// claimed are not dispatched yet.
    pub(super) unconfirmed: BTreeSet<ExecutionId>,
    /// Number of the newest batch.
    pub(super) batch: u64,
    /// Executions that lost an in-flight append, with the newest batch that may have been decided
    /// on it. A reply without an event from such a batch is not trusted.
    pub(super) broken: HashMap<ExecutionId, u64>,
    /// Whether reading pending commands failed and has to be retried.
    pub(super) unread: bool,
    pub(super) retries: Vec<QueuedInput>,
    /// Pending commands that are newer than the state their execution is being decided on.
    pub(super) late: Vec<PendingCommand>,
    pub(super) contended: ContendedExecutions,
    /// Appends of in-flight batches, by execution.
    pub(super) in_flight: HashMap<ExecutionId, InFlight>,
    /// IDs of reports that were committed recently or are in flight. Detects a resent report whose
    /// sender checked the store before the first copy was committed.
    pub(super) reported: LruCache<(ExecutionId, EventId), ()>,
}

/// Commit in flight. Resolves to the store's outcome and the work that waits for it.
type CommitFuture = BoxFuture<'static, (Result<Vec<Committed>, StoreError>, CommitWaiters)>;
type Commits = FuturesOrdered<CommitFuture>;

/// Work that waits for a commit: each entry with the index of its append, or `None` if it appends
/// nothing.
pub(super) struct CommitWaiters {
    pub(super) batch: u64,
    pub(super) pending: Vec<(UncommittedItem, Option<usize>)>,
}

impl JournalWriter {
    pub(crate) fn new(parts: WriterDeps) -> Self {
        let cache = StateCache::new(parts.cache_bytes);
        let (unconfirmed, broken) = (BTreeSet::new(), HashMap::new());
        Self {
            parts,
            cache,
            unconfirmed,
            batch: 0,
            broken,
            unread: false,
            retries: Vec::new(),
            late: Vec::new(),
            contended: ContendedExecutions::default(),
            in_flight: HashMap::new(),
            reported: LruCache::new(REPORTED_MAX),
        }
    }

    /// Runs until the control plane shuts down. Inputs queued by then are still committed.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<QueuedInput>) {
        let mut commits = Commits::new();
        let mut jobs = Vec::new();
        loop {
            // Unconfirmed commits are reconciled between commits, so commits in flight finish
            // first.
            let room = if self.unconfirmed.is_empty() { COMMITS_MAX } else { 1 };
            let has_room = commits.len() < room;
            let rests = !self.unconfirmed.is_empty() || self.unread;
            tokio::select! {
                biased;
                Some((outcome, waiters)) = commits.next() => {
                    self.clear_in_flight(&waiters);
                    self.committed(outcome, waiters).await;
                    if commits.is_empty() {
                        self.broken.clear();
                        self.requeue_stale();
                    }
                    continue;
                }
                () = std::future::ready(()), if has_room && self.can_decide_again() => {}
                taken = queue.recv_many(&mut jobs, BATCH_MAX), if has_room => {
                    if taken == 0 {
                        // All senders are gone: the control plane was dropped during shutdown.
                        break;
                    }
                }
                () = self.parts.dispatch.freed(self.parts.shard), if has_room => {}
                () = tokio::time::sleep(STORE_REST), if rests && has_room => {}
                () = self.parts.closing.cancelled() => break,
            }
            self.turn(std::mem::take(&mut jobs), &mut commits).await;
        }
        queue.close();
        while queue.recv_many(&mut jobs, BATCH_MAX).await > 0 {
            self.turn(std::mem::take(&mut jobs), &mut commits).await;
            if commits.len() >= COMMITS_MAX
                && let Some((outcome, waiters)) = commits.next().await
            {
                self.clear_in_flight(&waiters);
                self.committed(outcome, waiters).await;
            }
        }
        loop {
            while let Some((outcome, waiters)) = commits.next().await {
                self.clear_in_flight(&waiters);
                self.committed(outcome, waiters).await;
            }
            if self.retries.is_empty() {
                return;
            }
            self.turn(Vec::new(), &mut commits).await;
        }
    }

    /// Returns `true` if an input is to be decided again and its execution has no append in flight.
    fn can_decide_again(&self) -> bool {
        self.retries.iter().any(|job| !self.is_in_flight(job.execution))
    }

    async fn turn(&mut self, mut jobs: Vec<QueuedInput>, commits: &mut Commits) {
        if !self.parts.identity.is_held() {
            // Without the machine-ID lease, new IDs could collide with those of another process.
            for job in std::mem::take(&mut self.retries).into_iter().chain(jobs) {
                let _ = job.reply.send(Err(SubmitError::Unleased));
            }
            self.unread = true;
            return;
        }
        for job in &mut jobs {
            // The command this input ends is done: free its slot for the commands the input issues.
            job.slot = None;
        }
        let mut batch = Batch::default();
        if commits.is_empty() {
            self.reconcile_unconfirmed(&mut batch).await;
        }
        let mut held: BTreeMap<ExecutionId, ContendedInputs> = BTreeMap::new();
        for job in std::mem::take(&mut self.retries).into_iter().chain(jobs) {
            if !self.contended.needs_lock(&job) {
                self.decide_job(&mut batch, job).await;
            } else if self.is_in_flight(job.execution) || batch.get(job.execution).is_some() {
                self.retries.push(job);
            } else {
                held.entry(job.execution).or_default().jobs.push(job);
            }
        }
        self.claim_all_waiting(&mut batch, &mut held).await;
        let SealedBatch { appends, pending, states } = batch.seal(&self.parts);
        self.batch += 1;
        self.mark_in_flight(&pending);
        self.cache_states(states);
        let waiters = CommitWaiters { batch: self.batch, pending };
        let store = self.parts.store.clone();
        let metrics = self.parts.metrics.clone();
        let mut commit: CommitFuture = Box::pin(async move {
            if appends.is_empty() {
                return (Ok(Vec::new()), waiters);
            }
            let timer = metrics.commit_seconds.start_timer();
            let outcome = store.commit(appends).await;
            timer.observe_duration();
            (outcome, waiters)
        });
        // Polled here, so the store receives commits in the order of the decisions.
        match futures::poll!(&mut commit) {
            Poll::Ready((outcome, waiters)) if commits.is_empty() => {
                self.clear_in_flight(&waiters);
                self.committed(outcome, waiters).await;
            }
            Poll::Ready(done) => commits.push_back(Box::pin(std::future::ready(done))),
            Poll::Pending => commits.push_back(commit),
        }
        for (execution, work) in held {
            self.decide_locked(execution, work).await;
        }
    }

    /// Caches the states that later decisions need: those of running executions, and those of
    /// executions that ended in a commit still in flight. Without the latter, the next input would
    /// be decided on a log that lacks the end.
    pub(super) fn cache_states(&mut self, states: Vec<CachedState>) {
        for cached in states {
            let (id, status) = (cached.state.id(), cached.state.status());
            if status == Status::Running || (status.is_final() && self.is_in_flight(id)) {
                self.cache.put(cached);
            }
        }
    }

    /// Returns `true` if the store lacks events of `execution` that are being committed, and no
    /// cached state includes them.
    pub(super) fn is_ahead_of_store(&self, execution: ExecutionId) -> bool {
        self.is_in_flight(execution) && !self.cache.contains(execution)
    }

    async fn decide_job(&mut self, batch: &mut Batch, job: QueuedInput) {
        let is_start = job.start.is_some();
        if !is_start && batch.get(job.execution).is_none() && self.is_ahead_of_store(job.execution)
        {
            self.retries.push(job);
            return;
        }
        // A start that is decided again may already be committed, or another start may use its ID.
        // Only the store can tell, by the start key, so the cached state is dropped.
        let asks_again = job.start.is_some() && job.attempts > 0;
        if asks_again {
            if batch.get(job.execution).is_some() {
                self.retries.push(job);
                return;
            }
            self.cache.take(job.execution);
        }
        let retry = Self::retry_copy(&job);
        let repeated = self.is_duplicate_report(&job).await;
        let QueuedInput { execution, input, start, reply, first_id, lease_holder, .. } = job;
        let is_repeated = match repeated {
            Ok(is_repeated) => is_repeated,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let is_known = batch.get(execution).is_some() || self.cache.contains(execution);
        let item = match start {
            Some(start) if !is_known => {
                let state = Execution::new(execution);
                let cached = CachedState::new(state, start.playbook, start.tenant.clone());
                let start = StartAppend { key: start.key, tenant: start.tenant };
                batch.put(execution, BatchItem::new(cached, Some(start)))
            }
            // A repeated start is rejected by the state the first one led to.
            Some(_) | None => match self.item(batch, execution).await {
                Ok(item) => item,
                Err(error) => {
                    let _ = reply.send(Err(error));
                    return;
                }
            },
        };
        let decided = if is_repeated {
            Ok((item.no_events(), None))
        } else {
            self.decide_into(item, input, first_id, lease_holder.as_ref()).await
        };
        item.replies.push(Reply::new(reply, decided, retry));
    }

    pub(super) async fn load(
        &self,
        execution: ExecutionId,
    ) -> Result<Option<CachedState>, SubmitError> {
        let parts = &self.parts;
        load::load(&*parts.store, &*parts.catalog, &parts.playbooks, &parts.ids, execution).await
    }

    /// Returns the batch item of `execution`: from the batch, from the cache, or folded from the
    /// event log.
    pub(super) async fn item<'b>(
        &mut self,
        batch: &'b mut Batch,
        execution: ExecutionId,
    ) -> Result<&'b mut BatchItem, SubmitError> {
        if batch.get(execution).is_none() {
            let cached = match self.cache.take(execution) {
                Some(cached) => cached,
                None => {
                    let found = self.load(execution).await?;
                    found.ok_or(SubmitError::Refused(Rejection::NotFound))?
                }
            };
            batch.put(execution, BatchItem::new(cached, None));
        }
        Ok(batch.get(execution).expect("put there just above"))
    }
}

impl JournalWriter {
    /// Decides an input and adds the decision to its item. The decision claims the issued commands for
    /// the reporting worker and for free local slots.
    pub(super) async fn decide_into(
        &mut self,
        item: &mut BatchItem,
        input: Input,
        first_id: Option<EventId>,
        reporter: Option<&LeaseHolder>,
    ) -> Result<DecisionResult, SubmitError> {
        let id = report_id(&input).or(first_id);
        let BatchItem { cached, decision, .. } = item;
        let execution = cached.state.id();
        let in_flight = self.in_flight.get(&execution);
        let in_flight = in_flight.map_or(&[][..], |in_flight| &in_flight.events);
        let uncommitted = [in_flight, &decision.events];
        let tenant = cached.tenant.clone();
        let mut offers = Offers::new(&self.parts, execution, &tenant, reporter);
        let mut claim_for = |command, issued: &_| offers.offer(command, issued);
        let decided =
            decide_on(&self.parts, cached, uncommitted, input, first_id, &mut claim_for).await?;
        // A report without events leaves no trace of its ID in the log, so a resent one may still
        // be recorded.
        if let Some(id) = id.filter(|_| !decided.events.is_empty()) {
            self.reported.put((execution, id), ());
        }
        let Offers { handed, claims, .. } = offers;
        item.claims.extend(claims);
        let range = item.add(decided);
        if let Some(reporter) = reporter {
            handoff::record_leases(item, range.clone(), reporter);
        }
        Ok((range, handed))
    }
}
