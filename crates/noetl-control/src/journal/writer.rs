//! The loop that decides and commits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use std::num::NonZeroUsize;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use lru::LruCache;
use noetl_engine::{Caps, Execution, Input, Refusal, Status, may_end, spans_of};
use noetl_model::{Clock, EventId, ExecutionId};
use noetl_store::{Committed, Start, Store, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::again::report_id;
use super::batch::{Batch, Item, Led, Pending, Reply, Sealed};
use super::claim::claim_new;
use super::decide::decide_on;
use super::held::{Contended, ForHeld};
use super::under_way::UnderWay;
use super::{Elsewhere, Job, SubmitError, elsewhere, load};
use crate::cache::{Cache, Cached};
use crate::catalog::Playbooks;
use crate::dispatch::{Dispatch, Waiting};
use crate::identity::Identity;
use crate::ids::Ids;
use crate::local::Assignment;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::results::Results;
use crate::snapshots::Snapshots;
use crate::traces::Traces;
use crate::watch::Watch;

/// Inputs decided per transaction: enough to spread an fsync over many, few enough that the first
/// does not wait long for the last.
const BATCH_MAX: usize = 512;

/// Commits under way at a time: enough that the store finds the next one when it is done with one,
/// few enough that little is decided on what may not be kept.
const COMMITS_MAX: usize = 8;

/// How long a failing execution waits for commands it told to stop.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(30);

/// How long the writer rests after the store failed, so that a full disk is not hammered.
pub(super) const STORE_REST: Duration = Duration::from_millis(200);

/// Reports remembered: more than can be on their way to the writer at a time.
const REPORTED_MAX: NonZeroUsize = NonZeroUsize::new(16 * 1024).expect("not zero");

/// What a writer is made of.
pub(crate) struct WriterParts {
    /// The shard's own database.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) shard: usize,
    /// Where the catalog is.
    pub(crate) catalog: Arc<dyn Store>,
    pub(crate) results: Results,
    pub(crate) snapshots: Snapshots,
    pub(crate) identity: Identity,
    pub(crate) due_written: Arc<Notify>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) playbooks: Playbooks,
    pub(crate) dispatch: Dispatch,
    pub(crate) watch: Watch,
    pub(crate) env: Arc<BTreeMap<String, String>>,
    pub(crate) caps: Caps,
    /// Who is told of what.
    pub(crate) notify: Notices,
    pub(crate) traces: Traces,
    pub(crate) assignments: mpsc::Sender<Assignment>,
    pub(crate) cache_bytes: usize,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) closing: CancellationToken,
}

/// Decides and commits. One per store: states are its own, so nothing is locked.
///
/// While a batch commits, the next is decided on the states the first will leave behind. The store
/// commits in the order it was asked, and checks every append against the log: if a batch is not
/// kept, its states are dropped, and what was decided on top of them does not fit and is not kept
/// either.
pub(crate) struct Writer {
    pub(super) parts: WriterParts,
    pub(super) cache: Cache,
    /// Executions of a commit that failed: what it issued and claimed, if it was kept after all, is
    /// handed to nobody yet.
    pub(super) suspects: BTreeSet<ExecutionId>,
    /// The number of the newest batch.
    pub(super) batch: u64,
    /// Executions of which something under way was not kept, with the newest batch that may have
    /// been decided on it: what such a batch answers without an event is not to be believed.
    pub(super) broken: HashMap<ExecutionId, u64>,
    /// Whether waiting commands could not be read and are to be tried again.
    pub(super) unread: bool,
    /// Inputs to be decided once more.
    pub(super) again: Vec<Job>,
    /// Commands that are newer than a state something is being decided on.
    pub(super) late: Vec<Waiting>,
    pub(super) contended: Contended,
    /// What batches under way append, by execution.
    pub(super) under_way: HashMap<ExecutionId, UnderWay>,
    /// Ids of reports that were kept lately or are about to be: a repeat that was asked for before
    /// the first was found in the store is known by them.
    pub(super) reported: LruCache<(ExecutionId, EventId), ()>,
}

/// A commit under way: what the store says, and what waits for it.
type Commit = BoxFuture<'static, (Result<Vec<Committed>, StoreError>, Waiters)>;

/// What waits for a commit, each with the place of its append, if it has one.
pub(super) struct Waiters {
    pub(super) batch: u64,
    pub(super) pending: Vec<(Pending, Option<usize>)>,
}

impl Writer {
    pub(crate) fn new(parts: WriterParts) -> Self {
        let cache = Cache::new(parts.cache_bytes);
        let (suspects, broken) = (BTreeSet::new(), HashMap::new());
        Self {
            parts,
            cache,
            suspects,
            batch: 0,
            broken,
            unread: false,
            again: Vec::new(),
            late: Vec::new(),
            contended: Contended::default(),
            under_way: HashMap::new(),
            reported: LruCache::new(REPORTED_MAX),
        }
    }

    /// Runs until the control plane closes; what was queued by then is still committed.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut commits: FuturesOrdered<Commit> = FuturesOrdered::new();
        let mut jobs = Vec::new();
        loop {
            // Suspects are looked after between commits, so those under way are let to end first.
            let room = if self.suspects.is_empty() { COMMITS_MAX } else { 1 };
            let has_room = commits.len() < room;
            let rests = !self.suspects.is_empty() || self.unread;
            tokio::select! {
                biased;
                Some((outcome, waiters)) = commits.next() => {
                    self.arrived(&waiters);
                    self.committed(outcome, waiters).await;
                    if commits.is_empty() {
                        self.broken.clear();
                        self.wait_late();
                    }
                    continue;
                }
                () = std::future::ready(()), if has_room && self.can_decide_again() => {}
                taken = queue.recv_many(&mut jobs, BATCH_MAX), if has_room => {
                    if taken == 0 {
                        // Nobody is left who could submit anything: a control plane was dropped
                        // while it closed.
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
                self.arrived(&waiters);
                self.committed(outcome, waiters).await;
            }
        }
        loop {
            while let Some((outcome, waiters)) = commits.next().await {
                self.arrived(&waiters);
                self.committed(outcome, waiters).await;
            }
            if self.again.is_empty() {
                return;
            }
            self.turn(Vec::new(), &mut commits).await;
        }
    }

    /// Whether an input waits to be decided once more and nothing keeps it from that.
    fn can_decide_again(&self) -> bool {
        self.again.iter().any(|job| !self.is_under_way(job.execution))
    }

    async fn turn(&mut self, mut jobs: Vec<Job>, commits: &mut FuturesOrdered<Commit>) {
        if !self.parts.identity.is_held() {
            // Ids minted now could be another's.
            for job in std::mem::take(&mut self.again).into_iter().chain(jobs) {
                let _ = job.reply.send(Err(SubmitError::Unleased));
            }
            self.unread = true;
            return;
        }
        for job in &mut jobs {
            // The command this input ends is over: its slot serves what the input leads to.
            job.slot = None;
        }
        let mut batch = Batch::default();
        if commits.is_empty() {
            self.look_after_suspects(&mut batch).await;
        }
        let mut held: BTreeMap<ExecutionId, ForHeld> = BTreeMap::new();
        for job in std::mem::take(&mut self.again).into_iter().chain(jobs) {
            if !self.contended.takes(&job) {
                self.decide_job(&mut batch, job).await;
            } else if self.is_under_way(job.execution) || batch.get(job.execution).is_some() {
                self.again.push(job);
            } else {
                held.entry(job.execution).or_default().jobs.push(job);
            }
        }
        self.claim_all_waiting(&mut batch, &mut held).await;
        let Sealed { appends, pending, states } = batch.seal(&self.parts);
        self.batch += 1;
        self.set_off(&pending);
        self.cache_states(states);
        let waiters = Waiters { batch: self.batch, pending };
        let store = self.parts.store.clone();
        let metrics = self.parts.metrics.clone();
        let mut commit: Commit = Box::pin(async move {
            if appends.is_empty() {
                return (Ok(Vec::new()), waiters);
            }
            let timer = metrics.commit_seconds.start_timer();
            let outcome = store.commit(appends).await;
            timer.observe_duration();
            (outcome, waiters)
        });
        // Polled here, so that the store is asked in the order of the decisions.
        match futures::poll!(&mut commit) {
            Poll::Ready((outcome, waiters)) if commits.is_empty() => {
                self.arrived(&waiters);
                self.committed(outcome, waiters).await;
            }
            Poll::Ready(done) => commits.push_back(Box::pin(std::future::ready(done))),
            Poll::Pending => commits.push_back(commit),
        }
        for (execution, work) in held {
            self.decide_held(execution, work).await;
        }
    }

    /// Keeps the states that the next decisions need: those that run, and those that ended and are
    /// not committed yet. Without the latter, the next input would be decided on a log that lacks
    /// the end.
    pub(super) fn cache_states(&mut self, states: Vec<Cached>) {
        for cached in states {
            let (id, status) = (cached.state.id(), cached.state.status());
            if status == Status::Running || (status.is_final() && self.is_under_way(id)) {
                self.cache.put(cached);
            }
        }
    }

    /// Returns `true` if the store lacks events of an execution that are being committed, and memory
    /// has no state that includes them.
    pub(super) fn is_ahead_of_store(&self, execution: ExecutionId) -> bool {
        self.is_under_way(execution) && !self.cache.contains(execution)
    }

    async fn decide_job(&mut self, batch: &mut Batch, job: Job) {
        let is_start = job.start.is_some();
        if !is_start && batch.get(job.execution).is_none() && self.is_ahead_of_store(job.execution)
        {
            self.again.push(job);
            return;
        }
        // A start that is decided again may have been kept, or another's may have its id: the store
        // tells by its key, so it is asked, whatever is known here.
        let asks_again = job.start.is_some() && job.tries > 0;
        if asks_again {
            if batch.get(job.execution).is_some() {
                self.again.push(job);
                return;
            }
            self.cache.take(job.execution);
        }
        let again = Self::remember(&job);
        let repeated = self.is_repeated(&job).await;
        let Job { execution, input, start, reply, first_id, elsewhere, .. } = job;
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
                let cached =
                    Cached::new(Execution::absent(execution), start.playbook, start.tenant.clone());
                let start = Start { key: start.key, tenant: start.tenant };
                batch.put(execution, Item::new(cached, Some(start)))
            }
            // A start that is asked for again is refused by the state it led to.
            Some(_) | None => match self.item(batch, execution).await {
                Ok(item) => item,
                Err(error) => {
                    let _ = reply.send(Err(error));
                    return;
                }
            },
        };
        let decided = if is_repeated {
            Ok((item.add(Vec::new()), None))
        } else {
            self.decide_into(item, input, first_id, elsewhere.as_ref()).await
        };
        item.replies.push(Reply::new(reply, decided, again));
    }

    pub(super) async fn load(&self, execution: ExecutionId) -> Result<Option<Cached>, SubmitError> {
        let parts = &self.parts;
        load::load(&*parts.store, &*parts.catalog, &parts.playbooks, &parts.ids, execution).await
    }

    /// The item of an execution: already in the batch, in memory, or folded from the log.
    pub(super) async fn item<'b>(
        &mut self,
        batch: &'b mut Batch,
        execution: ExecutionId,
    ) -> Result<&'b mut Item, SubmitError> {
        if batch.get(execution).is_none() {
            let cached = match self.cache.take(execution) {
                Some(cached) => cached,
                None => {
                    let found = self.load(execution).await?;
                    found.ok_or(SubmitError::Refused(Refusal::NotFound))?
                }
            };
            batch.put(execution, Item::new(cached, None));
        }
        Ok(batch.get(execution).expect("put there just above"))
    }
}

impl Writer {
    /// Decides an input, adds what follows to its item, and claims what it issues for the worker that
    /// said it and for free slots.
    pub(super) async fn decide_into(
        &mut self,
        item: &mut Item,
        input: Input,
        first_id: Option<EventId>,
        elsewhere: Option<&Elsewhere>,
    ) -> Result<Led, SubmitError> {
        let id = report_id(&input).or(first_id);
        let execution = item.cached.state.id();
        let under_way = self.under_way.get(&execution);
        let under_way = under_way.map_or(&[][..], |under_way| &under_way.events);
        let here = [under_way, &item.events];
        let endings = self.parts.traces.is_recording().then(|| may_end(&item.cached.state, &input));
        let decided = decide_on(&self.parts, &mut item.cached, here, input, first_id);
        let events = decided.await?;
        // One that leads to nothing is not in the log under its id; it may still be kept there.
        if let Some(id) = id.filter(|_| !events.is_empty()) {
            self.reported.put((execution, id), ());
        }
        if let Some(endings) = endings {
            item.spans.extend(spans_of(&item.cached.state, &endings, &events));
        }
        let range = item.add(events);
        let handed = elsewhere.and_then(|to| {
            elsewhere::lease(item, range.clone(), to);
            elsewhere::hand_over(&self.parts, item, range.clone(), to)
        });
        claim_new(&self.parts, item, range.start);
        Ok((range, handed))
    }
}
