//! Leases commands to remote workers that renew their leases.
//!
//! A worker long-polls for commands. Each claim is a journal input like any other. While commands
//! run, the worker periodically sends one request that lists all of them: the request renews their
//! leases, and the response names the commands to stop. A command claimed for a client that has
//! disconnected becomes available once its lease expires.

mod execution_cache;
mod fair;
mod handoff_cache;
mod leased;
mod reaper;
mod stop_requests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use noetl_engine::{Claim, Input};
use noetl_journal::{Journal, LeaseHolder, LongPolls, Metrics, SubmitError, TenantScope};
use noetl_model::{CommandId, CommandState, ExecutionId, Seq, Tenant};
use noetl_store::{CommandFilter, CommandRow, RemoteStore, StoreError};
use noetl_work::LEASE_BATCH_MAX;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

pub(crate) use self::execution_cache::{CachedExecution, ExecutionCache};
use self::fair::interleave_executions;
pub(crate) use self::handoff_cache::HandoffCache;
pub use self::leased::{LeasedRow, LongPoll, RenewalResult};
pub(crate) use self::reaper::LeaseReaper;
use crate::workers::{WorkerError, Workers, check_name};

/// Default duration of a renewable lease. Long enough to survive several lost renewals.
pub const LEASE: Duration = Duration::from_secs(45);

/// Maximum duration of a long poll. Proxies close requests that take a minute.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// Interval at which a long poll reads the store without a notification. Covers lost notifications
/// and commands released by other processes.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Pending commands read at a time: enough to alternate between executions.
const PAGE: usize = 256;

/// Maximum number of pools whose last execution is remembered. Bounded because a start request can
/// name any pool.
const POOLS_MAX: usize = 1000;

/// Maximum number of immediate retries when other workers claimed every command of a page.
const LOOKS_MAX: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The worker was rejected; see [`WorkerError`].
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A count is outside its range.
    #[error("{what} must be from {least} to {LEASE_BATCH_MAX}, not {found}")]
    Amount { what: &'static str, least: usize, found: usize },
    /// The journal did not commit a claim.
    #[error("no command was claimed")]
    Submit(#[source] SubmitError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Leases commands to remote workers and renews the leases. Cheap to clone.
#[derive(Clone)]
pub struct LeaseService {
    pub(crate) store: Arc<dyn RemoteStore>,
    pub(crate) journal: Journal,
    pub(crate) workers: Workers,
    pub(crate) calls: LongPolls,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) draining: CancellationToken,
    /// Duration of a renewable lease.
    pub(crate) lease: Duration,
    /// Executions whose commands were leased before.
    pub(crate) known: ExecutionCache,
    /// Execution of the last command leased, by pool.
    pub(crate) last: Arc<Mutex<HashMap<String, ExecutionId>>>,
}

impl LeaseService {
    /// Returns the duration of a lease that the worker does not renew.
    pub const fn duration(&self) -> Duration {
        self.lease
    }

    /// Returns a service that grants and renews leases of this duration.
    pub(crate) fn with_lease(&self, lease: Duration) -> Self {
        Self { lease, ..self.clone() }
    }

    /// Waits for matching commands and leases up to `max` of them to the worker. Returns an empty
    /// list if none appear within `wait` (at most [`WAIT_MAX`]) or the control plane drains.
    pub async fn lease(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        request: LongPoll,
    ) -> Result<Vec<LeasedRow>, LeaseError> {
        check_name(&request.worker)?;
        amount("max", 1, request.max)?;
        let wanted = wanted(scope, request.pool.clone(), request.kinds.clone());
        let key = request.public_key.as_deref();
        self.workers.record_poll(tenant, scope, &request.worker, &wanted, key).await?;
        let until = Instant::now() + request.wait.min(WAIT_MAX);
        let line = self.calls.wait_for(wanted.clone());
        loop {
            let looking = line.looks();
            let taken = self.take(&wanted, &request.worker, request.max).await?;
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

    /// Returns a lease holder that accepts the next command of this pool and these tool kinds with
    /// each completion response.
    pub fn next_command_filter(
        &self,
        scope: &TenantScope,
        worker: &str,
        pool: Option<String>,
        kinds: Option<Vec<String>>,
    ) -> Result<LeaseHolder, LeaseError> {
        check_name(worker)?;
        let next = Some(Arc::new(wanted(scope, pool, kinds)));
        self.workers.held().record();
        Ok(LeaseHolder { next, ..self.lease_holder(worker) })
    }

    pub(crate) fn lease_holder(&self, worker: &str) -> LeaseHolder {
        LeaseHolder { name: Arc::from(worker), lease: self.lease, next: None }
    }

    /// Renews the leases of the listed commands, and returns the commands that the worker must stop
    /// or has lost.
    pub async fn renew(
        &self,
        tenant: &Tenant,
        scope: &TenantScope,
        worker: &str,
        commands: &[CommandId],
    ) -> Result<RenewalResult, LeaseError> {
        amount("the number of commands", 0, commands.len())?;
        let kind = noetl_store::RuntimeKind::WorkerPool;
        check_name(worker)?;
        // Leases are renewed first, and independently of the heartbeat: one unavailable database
        // must not expire leases in the others.
        let held = self.store.renew_leases(scope.as_ref(), worker, commands, self.lease).await;
        if let Err(error) = self.workers.heartbeat(tenant, scope, kind, worker).await {
            warn!(worker, %error, "failed to record worker heartbeat");
        }
        let held = held.map_err(LeaseError::Store)?;
        if !held.is_empty() {
            self.workers.held().record();
        }
        let stopped = self.commands_to_stop(&held).await.map_err(LeaseError::Store)?;
        let mut renewed = RenewalResult::default();
        for command in commands {
            if held.binary_search(command).is_ok() {
                if self.calls.is_stopped(*command) || stopped.contains(command) {
                    renewed.cancel.push(*command);
                }
                continue;
            }
            match self.store.command(*command).await.map_err(LeaseError::Store)? {
                Some(row) if row.state == CommandState::Cancelled => renewed.cancel.push(*command),
                // The command is parked, or another transaction is changing it: neither cancelled
                // nor lost.
                Some(row) if !row.state.is_terminal() && row.worker.as_deref() == Some(worker) => {}
                Some(_) | None => renewed.lost.push(*command),
            }
        }
        Ok(renewed)
    }

    /// Expires overdue leases now instead of at the next scan. Returns their number.
    pub async fn expire_overdue(&self) -> Result<usize, StoreError> {
        let look = LeaseReaper {
            store: self.store.clone(),
            journal: self.journal.clone(),
            held: self.workers.held().clone(),
            metrics: self.metrics.clone(),
            lost: self.workers.lost_reports().clone(),
            lease: self.lease,
            closing: self.draining.clone(),
        };
        look.reap().await
    }

    /// Leases up to `max` pending commands to a worker, without waiting for any.
    pub(crate) async fn take(
        &self,
        wanted: &CommandFilter,
        worker: &str,
        max: usize,
    ) -> Result<Vec<LeasedRow>, LeaseError> {
        for _ in 0..LOOKS_MAX {
            let (waiting, is_all) = self.waiting(wanted, max).await?;
            let taken = self.claim(waiting, worker, max).await?;
            if let Some(last) = taken.last() {
                self.workers.held().record();
                self.had_its_turn(&last.row);
                return Ok(taken);
            }
            if is_all {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Returns pending commands in round-robin order by execution, and whether the list is
    /// complete.
    async fn waiting(
        &self,
        wanted: &CommandFilter,
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
            // Commands of other executions are behind this one, however many commands it has.
            let others = CommandFilter { not_of: Some(first), ..wanted.clone() };
            let others = self.store.pending_commands(&others, page).await;
            found.extend(others.map_err(LeaseError::Store)?);
        }
        let last = self.lock().get(wanted.pool()).copied();
        Ok((interleave_executions(found, last), is_all))
    }

    /// Claims up to `max` commands. Skips commands that other workers claimed first.
    async fn claim(
        &self,
        waiting: Vec<CommandRow>,
        worker: &str,
        max: usize,
    ) -> Result<Vec<LeasedRow>, LeaseError> {
        let worker = self.lease_holder(worker);
        let mut taken = Vec::new();
        let mut waiting = waiting.into_iter();
        loop {
            let next: Vec<CommandRow> = waiting.by_ref().take(max - taken.len()).collect();
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
                // Claimed commands have to be returned to the worker; the rest stay pending.
                Some(error) => {
                    warn!(%error, "leased fewer commands than are pending");
                    return Ok(taken);
                }
            }
        }
    }

    /// Returns the executions of these commands. Executions that no longer exist are left out, and
    /// so are their commands.
    async fn executions_of(
        &self,
        rows: &[CommandRow],
    ) -> Result<HashMap<ExecutionId, CachedExecution>, LeaseError> {
        let ids: BTreeSet<ExecutionId> = rows.iter().map(|row| row.execution).collect();
        let read = ids.into_iter().map(|id| self.known.get_or_load(&*self.store, id));
        let read: Result<Vec<_>, StoreError> = join_all(read).await.into_iter().collect();
        let read = read.map_err(LeaseError::Store)?;
        Ok(read.into_iter().flatten().map(|of| (of.1.id, of)).collect())
    }

    /// Claims a command. Returns `None` if another worker claimed it or it has ended. Reads the
    /// `command.issued` event before the claim, because a claimed command has to be returned to the
    /// worker.
    async fn claim_one(
        &self,
        row: CommandRow,
        of: CachedExecution,
        worker: LeaseHolder,
    ) -> Result<Option<LeasedRow>, LeaseError> {
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
        let Some(leased) = LeasedRow::new(row, event, of) else { return Ok(None) };
        match self.journal.submit_from_worker(execution, input, worker).await {
            // No event: another request of this worker has claimed it.
            Ok(accepted) if accepted.events.is_empty() => Ok(None),
            Ok(_) => Ok(Some(leased)),
            Err(SubmitError::Refused(_)) => Ok(None),
            Err(error) => Err(LeaseError::Submit(error)),
        }
    }

    /// Records the execution as the last one served in its pool, so the next poll of the pool
    /// starts with other executions.
    fn had_its_turn(&self, row: &CommandRow) {
        let mut turns = self.lock();
        if turns.len() >= POOLS_MAX {
            turns.clear();
        }
        turns.insert(row.pool.to_string(), row.execution);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ExecutionId>> {
        // Each critical section is one call that cannot panic midway.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn wanted(
    scope: &TenantScope,
    pool: Option<String>,
    kinds: Option<Vec<String>>,
) -> CommandFilter {
    let pool = pool.filter(|pool| !pool.is_empty()).map(Arc::from);
    CommandFilter { tenant: scope.clone(), pool, kinds, not_of: None }
}

fn amount(what: &'static str, least: usize, found: usize) -> Result<(), LeaseError> {
    if (least..=LEASE_BATCH_MAX).contains(&found) {
        return Ok(());
    }
    Err(LeaseError::Amount { what, least, found })
}
