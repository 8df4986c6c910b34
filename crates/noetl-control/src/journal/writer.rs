//! The loop that decides and commits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{
    Abandon, Claim, Effect, Execution, Input, Moment, Refusal, Status, decide, effects_of,
};
use noetl_model::{Clock, CommandId, ExecutionId, Fact};
use noetl_playbook::template::Entropy;
use noetl_store::{Committed, Start, Store, StoreError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::batch::{Batch, Item, LocalClaim, Reply};
use super::{Job, Journal, SubmitError, load};
use crate::cache::{Cache, Cached};
use crate::catalog::Playbooks;
use crate::dispatch::{Dispatch, Slot, Waiting};
use crate::ids::{self, Ids};
use crate::local::{Assignment, LOCAL_WORKER};
use crate::watch::Watch;

/// Inputs decided per transaction: enough to spread an fsync over many, few enough that the first
/// does not wait long for the last.
const BATCH_MAX: usize = 512;

/// How long a failing execution waits for commands it told to stop.
const STOP_GRACE: Duration = Duration::from_secs(30);

/// How long the writer rests after the store failed, so that a full disk is not hammered.
const STORE_REST: Duration = Duration::from_millis(200);

/// What a writer is made of.
pub(crate) struct WriterParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) playbooks: Playbooks,
    pub(crate) dispatch: Dispatch,
    pub(crate) watch: Watch,
    pub(crate) env: Arc<BTreeMap<String, String>>,
    pub(crate) assignments: mpsc::Sender<Assignment>,
    pub(crate) journal: Journal,
    pub(crate) cache_bytes: usize,
    pub(crate) closing: CancellationToken,
}

/// Decides and commits. One per store: states are its own, so nothing is locked.
pub(crate) struct Writer {
    parts: WriterParts,
    cache: Cache,
}

impl Writer {
    pub(crate) fn new(parts: WriterParts) -> Self {
        let cache = Cache::new(parts.cache_bytes);
        Self { parts, cache }
    }

    /// Runs until the control plane closes; what was queued by then is still committed.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        loop {
            let mut jobs = Vec::new();
            tokio::select! {
                biased;
                _ = queue.recv_many(&mut jobs, BATCH_MAX) => {}
                () = self.parts.dispatch.freed() => {}
                () = self.parts.closing.cancelled() => break,
            }
            self.turn(jobs).await;
        }
        queue.close();
        let mut jobs = Vec::new();
        while queue.recv_many(&mut jobs, BATCH_MAX).await > 0 {
            self.turn(std::mem::take(&mut jobs)).await;
        }
    }

    async fn turn(&mut self, mut jobs: Vec<Job>) {
        for job in &mut jobs {
            // The command this input ends is over: its slot serves what the input leads to.
            job.slot = None;
        }
        let mut batch = Batch::default();
        for job in jobs {
            self.decide_job(&mut batch, job).await;
        }
        self.refill().await;
        while let Some((waiting, slot)) = self.parts.dispatch.next() {
            self.claim_waiting(&mut batch, waiting, slot).await;
        }
        self.commit(batch).await;
    }

    async fn decide_job(&mut self, batch: &mut Batch, job: Job) {
        let Job { execution, input, start, reply, slot: _ } = job;
        let item = match start {
            Some(start) => {
                let cached = Cached::new(Execution::absent(execution), start.playbook);
                let start = Start { key: start.key, tenant: start.tenant };
                batch.put(execution, Item::new(cached, Some(start)))
            }
            None => match self.item(batch, execution).await {
                Ok(item) => item,
                Err(error) => {
                    let _ = reply.send(Err(error));
                    return;
                }
            },
        };
        let decided = decide_on(&self.parts, &mut item.cached, input);
        let outcome = match decided {
            Ok(events) => {
                let range = item.add(events);
                claim_new(&self.parts, item, range.start);
                Ok(range)
            }
            Err(refusal) => Err(SubmitError::Refused(refusal)),
        };
        item.replies.push(Reply { to: reply, outcome });
    }

    /// The item of an execution: already in the batch, in memory, or folded from the log.
    async fn item<'b>(
        &mut self,
        batch: &'b mut Batch,
        execution: ExecutionId,
    ) -> Result<&'b mut Item, SubmitError> {
        if batch.get(execution).is_none() {
            let cached = match self.cache.take(execution) {
                Some(cached) => cached,
                None => {
                    let found =
                        load::load(&*self.parts.store, &self.parts.playbooks, execution).await?;
                    found.ok_or(SubmitError::Refused(Refusal::NotFound))?
                }
            };
            batch.put(execution, Item::new(cached, None));
        }
        Ok(batch.get(execution).expect("put there just above"))
    }

    async fn claim_waiting(&mut self, batch: &mut Batch, waiting: Waiting, slot: Slot) {
        let item = match self.item(batch, waiting.execution).await {
            Ok(item) => item,
            Err(SubmitError::Store(_)) => {
                drop(slot);
                self.parts.dispatch.wait(waiting);
                tokio::time::sleep(STORE_REST).await;
                return;
            }
            Err(error) => {
                warn!(execution.id = %waiting.execution, %error, "a waiting command is not claimed");
                return;
            }
        };
        claim(&self.parts, item, LocalClaim { waiting, slot, waited: true });
    }

    /// Reads back what waits in the store because it did not fit into memory.
    async fn refill(&mut self) {
        if !self.parts.dispatch.take_overflow() {
            return;
        }
        if let Err(error) =
            crate::recovery::wait_for_slots(&*self.parts.store, &self.parts.dispatch).await
        {
            warn!(%error, "waiting commands are not read back yet");
        }
    }

    async fn commit(&mut self, batch: Batch) {
        let (appends, places) = batch.appends();
        let committed = if appends.is_empty() {
            Ok(Vec::new())
        } else {
            self.parts.store.commit(appends).await
        };
        match committed {
            Ok(outcomes) => {
                if !outcomes.is_empty() {
                    self.parts.watch.store_works();
                }
                let mut by_place: Vec<Option<Committed>> = vec![None; batch.items.len()];
                for (place, outcome) in places.into_iter().zip(outcomes) {
                    by_place[place] = Some(outcome);
                }
                for (item, outcome) in batch.items.into_iter().zip(by_place) {
                    self.finish(item, outcome.unwrap_or(Committed::Appended));
                }
            }
            Err(error) => self.give_up(batch, error).await,
        }
    }

    fn finish(&mut self, item: Item, outcome: Committed) {
        match outcome {
            Committed::Appended => self.appended(item),
            Committed::Repeated => Item::answer(item.replies, &item.events),
            Committed::Taken => Item::refuse(item.replies, &SubmitError::Taken),
            Committed::Conflict { found } => {
                // One process owns the store, so another writer cannot have moved this log.
                let execution = item.cached.state.id();
                error!(execution.id = %execution, expected = %item.expected, %found,
                    "the log is not where it was left; the state is read again");
                self.wait_again(item.claims);
                Item::refuse(item.replies, &SubmitError::Busy);
            }
        }
    }

    fn appended(&mut self, item: Item) {
        let Item { cached, events, replies, claims, .. } = item;
        self.parts.watch.committed(&events);
        self.perform(&cached, effects_of(&cached.state, &events));
        for claim in claims {
            self.assign(&cached, claim);
        }
        Item::answer(replies, &events);
        if !cached.state.status().is_final() {
            self.cache.put(cached);
        }
    }

    fn perform(&self, cached: &Cached, effects: Vec<Effect>) {
        let execution = cached.state.id();
        for effect in effects {
            match effect {
                Effect::Dispatch { command, claimed_by: None } => {
                    self.parts.dispatch.wait(Waiting { execution, command });
                    self.parts.dispatch.wake();
                }
                // Claimed in the same transaction: it is assigned with its slot.
                Effect::Dispatch { claimed_by: Some(_), .. } => {}
                Effect::Stop { command } => self.parts.dispatch.stop(command),
                Effect::Finish { status } => self.parts.watch.ended(execution, status),
            }
        }
        if cached.state.is_failing() {
            self.abandon_later(execution);
        }
    }

    fn assign(&self, cached: &Cached, claim: LocalClaim) {
        let LocalClaim { waiting, slot, .. } = claim;
        let Some(open) = cached.state.open_command(waiting.command) else { return };
        let assignment = Assignment::new(
            waiting.execution,
            waiting.command,
            open.issued.clone(),
            self.parts.dispatch.runs(waiting.command),
            slot,
        );
        // The channel holds as many assignments as there are slots, so only a worker that is gone
        // can refuse one; the command is then found again at the next start.
        if self.parts.assignments.try_send(assignment).is_err() {
            self.parts.dispatch.ended(waiting.command);
        }
    }

    fn abandon_later(&self, execution: ExecutionId) {
        let journal = self.parts.journal.clone();
        let closing = self.parts.closing.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(STOP_GRACE) => {
                    // Refused when it ended by itself, which is what is hoped for.
                    let _ = journal.submit(execution, Input::Abandon(Abandon)).await;
                }
                () = closing.cancelled() => {}
            }
        });
    }

    /// Nothing of the batch was kept, or it is not known what was: states are dropped and read
    /// again, and everybody may come again, since every input is idempotent.
    async fn give_up(&mut self, batch: Batch, error: StoreError) {
        let error = Arc::new(error);
        warn!(error = %chain(&*error), items = batch.items.len(), "a batch was not committed");
        self.parts.watch.store_failed(error.clone());
        let error = SubmitError::Store(error);
        for item in batch.items {
            self.wait_again(item.claims);
            Item::refuse(item.replies, &error);
        }
        tokio::time::sleep(STORE_REST).await;
    }

    fn wait_again(&self, claims: Vec<LocalClaim>) {
        for claim in claims {
            let LocalClaim { waiting, slot, waited } = claim;
            if waited {
                self.parts.dispatch.wait(waiting);
            }
            drop(slot);
        }
    }
}

fn decide_on(
    parts: &WriterParts,
    cached: &mut Cached,
    input: Input,
) -> Result<Vec<noetl_model::Event>, Refusal> {
    let mut moment = Moment {
        now: parts.clock.now(),
        ids: &mut || parts.ids.event(),
        entropy: Entropy::new(ids::entropy()),
        env: parts.env.clone(),
    };
    decide(&cached.playbook, &mut cached.state, input, &mut moment)
}

/// Claims what a decision issued, for as many as there are free slots.
fn claim_new(parts: &WriterParts, item: &mut Item, from: usize) {
    if !parts.dispatch.has_worker() || item.cached.state.status() != Status::Running {
        return;
    }
    let issued: Vec<CommandId> = item.events[from..]
        .iter()
        .filter(|event| matches!(event.fact, Fact::CommandIssued(_)))
        .map(|event| event.id.into())
        .collect();
    for command in issued {
        if item.cached.state.open_command(command).is_none() {
            continue;
        }
        let Some(slot) = parts.dispatch.reserve() else { return };
        let waiting = Waiting { execution: item.cached.state.id(), command };
        claim(parts, item, LocalClaim { waiting, slot, waited: false });
    }
}

fn claim(parts: &WriterParts, item: &mut Item, claim: LocalClaim) {
    let input =
        Input::Claim(Claim { command: claim.waiting.command, worker: Arc::from(LOCAL_WORKER) });
    match decide_on(parts, &mut item.cached, input) {
        // No event: it was claimed before, and runs already.
        Ok(events) if events.is_empty() => {}
        Ok(events) => {
            item.add(events);
            item.claims.push(claim);
        }
        // Over meanwhile; the slot is free for another.
        Err(_) => {}
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
