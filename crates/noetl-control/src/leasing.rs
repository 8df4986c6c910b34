//! Commands for workers elsewhere that renew what they hold.
//!
//! A worker asks for commands and waits until there are some; a claim is an input of the journal like
//! any other. While it runs them, one call in a while names all it holds: that renews their leases and
//! tells it which are not wanted any more. What is claimed for a caller that has vanished comes back
//! when its lease ends.

mod fair;
mod handed;
mod held;
mod known;
mod leased;
mod look;
mod stopped;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use noetl_engine::{Claim, Input};
use noetl_model::{CommandId, CommandState, ExecutionId, Seq, Tenant};
use noetl_store::{CommandRow, Store, StoreError, Wanted};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use self::fair::in_turn;
pub(crate) use self::handed::Handed;
pub(crate) use self::held::Held;
pub(crate) use self::known::{Known, Of};
pub use self::leased::{LeaseRequest, Leased, Renewed};
pub(crate) use self::look::LeaseLook;
use crate::dispatch::calls::Calls;
use crate::journal::{Elsewhere, Journal, SubmitError};
use crate::metrics::Metrics;
use crate::workers::{Scope, WorkerError, Workers, check_name};

/// How long a lease lasts that its holder renews when nothing else is said: so long that several
/// renewals may be lost.
pub const LEASE: Duration = Duration::from_secs(45);

/// The longest a caller waits. Proxies give up on calls of a minute.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// The most commands of one answer, and of one renewal.
pub const BATCH_MAX: usize = 1000;

/// How often a caller that waits looks by itself. It is called when there is something; this is for
/// calls that were lost, and for what other processes leave.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Commands looked at a time: enough to take turns between executions.
const PAGE: usize = 256;

/// Pools whose last turn is remembered; whoever starts an execution can name another.
const POOLS_MAX: usize = 1000;

/// How often a look that lost every command to others is made again at once.
const LOOKS_MAX: usize = 4;

/// Why a worker got no answer.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It cannot be such a worker.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Too much is asked for at a time.
    #[error("{what} must be from {least} to {BATCH_MAX}, not {found}")]
    Amount {
        /// What is too much or too little.
        what: &'static str,
        least: usize,
        /// What was asked for.
        found: usize,
    },
    /// The journal did not take a claim.
    #[error("no command was claimed")]
    Submit(#[source] SubmitError),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// The leasing service. Cheap to clone.
#[derive(Clone)]
pub struct Leasing {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) journal: Journal,
    pub(crate) workers: Workers,
    pub(crate) calls: Calls,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) draining: CancellationToken,
    /// How long a lease lasts that its holder renews.
    pub(crate) lease: Duration,
    /// Executions whose commands were handed out before.
    pub(crate) known: Known,
    /// By pool: whose command was handed out last.
    pub(crate) last: Arc<Mutex<HashMap<String, ExecutionId>>>,
}

impl Leasing {
    /// How long a worker holds what it does not name again.
    pub const fn duration(&self) -> Duration {
        self.lease
    }

    /// Hands out commands, as soon as there are some; none when the wait is over.
    pub async fn lease(
        &self,
        tenant: &Tenant,
        scope: &Scope,
        request: LeaseRequest,
    ) -> Result<Vec<Leased>, LeaseError> {
        check_name(&request.worker)?;
        amount("max", 1, request.max)?;
        let wanted = wanted(scope, request.pool.clone(), request.kinds.clone());
        let key = request.public_key.as_deref();
        self.workers.asks(tenant, scope, &request.worker, &wanted, key).await?;
        let until = Instant::now() + request.wait.min(WAIT_MAX);
        let line = self.calls.wait_for(wanted.clone());
        loop {
            let looking = line.looks();
            let taken = self.take(&wanted, &request).await?;
            if !taken.is_empty() {
                looking.found();
                return Ok(taken);
            }
            drop(looking);
            let next = until.min(Instant::now() + LOOK_EVERY);
            tokio::select! {
                () = line.called() => {}
                () = tokio::time::sleep_until(next) => {}
                () = self.draining.cancelled() => return Ok(Vec::new()),
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
        }
    }

    /// A worker that takes something of this pool, with these tools, for every command it says has
    /// ended.
    pub fn takes_next(
        &self,
        scope: &Scope,
        worker: &str,
        pool: Option<String>,
        kinds: Option<Vec<String>>,
    ) -> Result<Elsewhere, LeaseError> {
        check_name(worker)?;
        let next = Some(Arc::new(wanted(scope, pool, kinds)));
        self.workers.held().seen();
        Ok(Elsewhere { next, ..self.elsewhere(worker) })
    }

    fn elsewhere(&self, worker: &str) -> Elsewhere {
        Elsewhere { name: Arc::from(worker), lease: self.lease, next: None }
    }

    /// Renews the leases of what a worker says it holds, and tells it what it need not run any more.
    pub async fn renew(
        &self,
        tenant: &Tenant,
        scope: &Scope,
        worker: &str,
        commands: &[CommandId],
    ) -> Result<Renewed, LeaseError> {
        amount("the number of commands", 0, commands.len())?;
        let kind = noetl_store::RuntimeKind::WorkerPool;
        check_name(worker)?;
        // First, and whatever becomes of the sign of life: a database that is away must not end the
        // leases in those that are there.
        let held = self.store.renew_held(scope.as_ref(), worker, commands, self.lease).await;
        if let Err(error) = self.workers.heartbeat(tenant, scope, kind, worker).await {
            warn!(worker, %error, "a worker's sign of life is not noted");
        }
        let held = held.map_err(LeaseError::Store)?;
        if !held.is_empty() {
            self.workers.held().seen();
        }
        let stopped = self.stopped_elsewhere(&held).await.map_err(LeaseError::Store)?;
        let mut renewed = Renewed::default();
        for command in commands {
            if held.binary_search(command).is_ok() {
                if self.calls.is_stopped(*command) || stopped.contains(command) {
                    renewed.cancel.push(*command);
                }
                continue;
            }
            match self.store.command(*command).await.map_err(LeaseError::Store)? {
                Some(row) if row.state == CommandState::Cancelled => renewed.cancel.push(*command),
                // It waits for an answer from elsewhere, or is being changed just now.
                Some(row) if !row.state.is_terminal() && row.worker.as_deref() == Some(worker) => {}
                Some(_) | None => renewed.lost.push(*command),
            }
        }
        Ok(renewed)
    }

    /// Deals with leases that have ended by now, rather than at the next look. How many.
    pub async fn end_overdue(&self) -> Result<usize, StoreError> {
        let look = LeaseLook {
            store: self.store.clone(),
            journal: self.journal.clone(),
            held: self.workers.held().clone(),
            metrics: self.metrics.clone(),
            lost: self.workers.lost_reports().clone(),
            lease: self.lease,
            closing: self.draining.clone(),
        };
        look.look().await
    }

    async fn take(
        &self,
        wanted: &Wanted,
        request: &LeaseRequest,
    ) -> Result<Vec<Leased>, LeaseError> {
        for _ in 0..LOOKS_MAX {
            let (waiting, is_all) = self.waiting(wanted, request.max).await?;
            let taken = self.claim(waiting, request).await?;
            if let Some(last) = taken.last() {
                self.workers.held().seen();
                self.had_its_turn(&last.row);
                return Ok(taken);
            }
            if is_all {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Commands to be claimed, in the order of their turns, and whether these are all there are.
    async fn waiting(
        &self,
        wanted: &Wanted,
        max: usize,
    ) -> Result<(Vec<CommandRow>, bool), LeaseError> {
        let page = PAGE.max(max);
        let found = self.store.pending_commands(wanted, page).await;
        let mut found = found.map_err(LeaseError::Store)?;
        let is_all = found.len() < page;
        if let Some(first) = found.first().map(|row| row.execution)
            && !is_all
            && found.iter().all(|row| row.execution == first)
        {
            // Those of others are behind it, however many it has.
            let others = Wanted { not_of: Some(first), ..wanted.clone() };
            let others = self.store.pending_commands(&others, page).await;
            found.extend(others.map_err(LeaseError::Store)?);
        }
        let last = self.lock().get(wanted.pool()).copied();
        Ok((in_turn(found, last), is_all))
    }

    /// Claims up to as many as are asked for. What others were quicker to take is passed over.
    async fn claim(
        &self,
        waiting: Vec<CommandRow>,
        request: &LeaseRequest,
    ) -> Result<Vec<Leased>, LeaseError> {
        let worker = self.elsewhere(&request.worker);
        let mut taken = Vec::new();
        let mut waiting = waiting.into_iter();
        loop {
            let next: Vec<CommandRow> = waiting.by_ref().take(request.max - taken.len()).collect();
            if next.is_empty() {
                return Ok(taken);
            }
            let of = self.executions_of(&next).await?;
            let claims = next.into_iter().filter_map(|row| {
                let of = of.get(&row.execution)?.clone();
                Some(self.claim_one(row, of, worker.clone()))
            });
            let mut failed = None;
            for claimed in join_all(claims).await {
                match claimed {
                    Ok(leased) => taken.extend(leased),
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                None => {}
                Some(error) if taken.is_empty() => return Err(error),
                // What was claimed is handed out; the rest stays where it is.
                Some(error) => {
                    warn!(%error, "fewer commands were handed out than wait");
                    return Ok(taken);
                }
            }
        }
    }

    /// The executions of these commands; those that are gone take their commands along.
    async fn executions_of(
        &self,
        rows: &[CommandRow],
    ) -> Result<HashMap<ExecutionId, Of>, LeaseError> {
        let ids: BTreeSet<ExecutionId> = rows.iter().map(|row| row.execution).collect();
        let read = ids.into_iter().map(|id| self.known.of(&*self.store, id));
        let read: Result<Vec<_>, StoreError> = join_all(read).await.into_iter().collect();
        let read = read.map_err(LeaseError::Store)?;
        Ok(read.into_iter().flatten().map(|of| (of.1.id, of)).collect())
    }

    /// Claims a command; `None` when it is another's or over. What is to be run is read first: once
    /// it is claimed, it has to be handed out.
    async fn claim_one(
        &self,
        row: CommandRow,
        of: Of,
        worker: Elsewhere,
    ) -> Result<Option<Leased>, LeaseError> {
        let event = match self.calls.issued(row.id) {
            Some(event) => event,
            None => {
                let before = Seq(row.issued.0.saturating_sub(1));
                let read = self.store.read(row.execution, before, 1).await;
                match read.map_err(LeaseError::Store)?.into_iter().next() {
                    Some(event) => Arc::new(event),
                    None => return Ok(None),
                }
            }
        };
        let input = Input::Claim(Claim { command: row.id, worker: worker.name.clone() });
        let execution = row.execution;
        let Some(leased) = Leased::new(row, event, of) else { return Ok(None) };
        match self.journal.submit_for(execution, input, worker).await {
            // Without an event another call of this worker has it.
            Ok(accepted) if accepted.events.is_empty() => Ok(None),
            Ok(_) => Ok(Some(leased)),
            Err(SubmitError::Refused(_)) => Ok(None),
            Err(error) => Err(LeaseError::Submit(error)),
        }
    }

    /// Whoever asks next for this pool begins with the executions behind this one.
    fn had_its_turn(&self, row: &CommandRow) {
        let mut turns = self.lock();
        if turns.len() >= POOLS_MAX {
            turns.clear();
        }
        turns.insert(row.pool.to_string(), row.execution);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ExecutionId>> {
        // Every critical section is one call that cannot panic half-way.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wanted(scope: &Scope, pool: Option<String>, kinds: Option<Vec<String>>) -> Wanted {
    let pool = pool.filter(|pool| !pool.is_empty()).map(Arc::from);
    Wanted { tenant: scope.clone(), pool, kinds, not_of: None }
}

fn amount(what: &'static str, least: usize, found: usize) -> Result<(), LeaseError> {
    if (least..=BATCH_MAX).contains(&found) {
        return Ok(());
    }
    Err(LeaseError::Amount { what, least, found })
}
