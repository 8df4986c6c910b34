//! Commands that workers elsewhere hold, each for as long as its lease lasts.
//!
//! A lease begins in the transaction that records the claim, so no crash leaves a command held by a
//! worker that nobody watches. Times are the store's own. What ends with a lease is decided by the
//! caller; here it is only told which have ended.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::command::{DEFAULT_POOL, is_elsewhere};
use noetl_model::{CommandId, CommandState, ExecutionId, Tenant, Timestamp};

use crate::{CommandRow, StoreError};

/// How soon after its claim a worker elsewhere has to say that it began.
pub const START_WITHIN: Duration = Duration::from_secs(60);

/// How long a worker that is known by its name only may be silent.
pub const SILENCE_MAX: Duration = Duration::from_secs(90);

/// How long such a worker may hold a command whose tool has no limit of its own.
pub const HELD_MAX: Duration = Duration::from_secs(3600);

/// What is added to a tool's limit, so that a worker that keeps it can still say so.
pub const TIMEOUT_GRACE: Duration = Duration::from_secs(60);

/// The longest limit that counts: no sum of times overflows with it.
const TIMEOUT_MAX: u64 = 366 * 24 * 3600 * 1000;

/// Which commands a worker would take.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only those of this tenant's executions.
    pub tenant: Option<Tenant>,
    /// Only those of this pool; the default one when `None`.
    pub pool: Option<Arc<str>>,
    /// Only those whose tool is one of these; any when `None`.
    pub kinds: Option<Vec<String>>,
    /// None of this execution.
    pub not_of: Option<ExecutionId>,
}

impl Wanted {
    pub fn pool(&self) -> &str {
        self.pool.as_deref().unwrap_or(DEFAULT_POOL)
    }

    /// Whether a command of this pool with this tool is wanted, whoever's it is.
    pub fn takes(&self, pool: &str, tool: &str) -> bool {
        self.pool() == pool
            && self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == tool))
    }
}

/// A lease that begins, or goes on, with the state a command came into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// How long it lasts from now on.
    pub lasts: Duration,
    /// Whether its holder names what it holds, so that only this renews it.
    pub is_named: bool,
}

impl Begun {
    /// The lease after that.
    #[must_use]
    pub fn holding(
        self,
        before: Option<Holding>,
        limit_ms: Option<i64>,
        now: Timestamp,
    ) -> Holding {
        if self.is_named {
            return Holding { until: now.plus(self.lasts), at_most: None };
        }
        Holding::moved(before, self.lasts, limit_ms, now)
    }
}

/// The lease of a command that came into this state in these hands; `None` when it has none in it.
/// `named` are the leases of workers that name what they hold.
pub fn lease_of(
    named: &[(CommandId, Duration)],
    command: CommandId,
    state: CommandState,
    worker: Option<&str>,
) -> Option<Begun> {
    let lasts = lease_in(state, worker)?;
    let named = named.iter().find(|(id, _)| *id == command).map(|(_, lasts)| *lasts);
    Some(Begun { lasts: named.unwrap_or(lasts), is_named: named.is_some() })
}

/// How long a lease lasts from now on, when a command came into this state in the hands of a worker
/// that is known by its name only; `None` when it has no lease in it.
pub fn lease_in(state: CommandState, worker: Option<&str>) -> Option<Duration> {
    let elsewhere = worker.is_some_and(is_elsewhere);
    match state {
        CommandState::Claimed if elsewhere => Some(START_WITHIN),
        CommandState::Running if elsewhere => Some(SILENCE_MAX),
        _ => None,
    }
}

/// A tool's limit as a row holds it.
pub fn limit_ms(timeout_ms: Option<u64>) -> Option<i64> {
    timeout_ms.map(|ms| i64::try_from(ms.min(TIMEOUT_MAX)).unwrap_or(i64::MAX))
}

/// The lease of one command. Stores with a database keep it in columns of the command's row and
/// apply the same rules there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    pub until: Timestamp,
    /// Beyond what it is not renewed; `None` for a worker that names what it still holds.
    pub at_most: Option<Timestamp>,
}

impl Holding {
    /// The lease after a command came into a state in which it has one, for this long.
    fn moved(before: Option<Self>, lasts: Duration, limit_ms: Option<i64>, now: Timestamp) -> Self {
        match before {
            Some(named @ Self { at_most: None, .. }) => named,
            Some(Self { at_most: Some(at_most), .. }) => {
                Self { until: now.plus(lasts).min(at_most), at_most: Some(at_most) }
            }
            None => {
                let limit = limit_ms.map(|ms| Duration::from_millis(ms.unsigned_abs()));
                let held = limit.map_or(HELD_MAX, |limit| limit + TIMEOUT_GRACE);
                let at_most = now.plus(held);
                Self { until: now.plus(lasts).min(at_most), at_most: Some(at_most) }
            }
        }
    }
}

/// A command that a worker elsewhere holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldCommand {
    pub id: CommandId,
    pub execution: ExecutionId,
    /// When its lease ends.
    pub until: Timestamp,
    /// Latest end of its lease; `None` when its worker names the commands it holds.
    pub at_most: Option<Timestamp>,
}

/// The commands that [`Holdings::limit_held`] is about.
#[derive(Debug, Clone, Copy)]
pub enum HeldBy<'a> {
    /// All commands of one worker.
    Worker(&'a str),
    /// These commands of any worker.
    Commands(&'a [CommandId]),
}

/// The limit that [`Holdings::limit_held`] set in one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLimit {
    /// Latest end of the leases.
    pub at_most: Timestamp,
    /// The number of commands whose leases got this limit.
    pub commands: usize,
}

/// Leases of commands that workers elsewhere hold. `scope` names the tenant whose commands are
/// meant, or all.
#[async_trait]
pub trait Holdings: Send + Sync {
    /// Renews the leases of these commands, for a worker that names what it holds: from now on only
    /// this renews them. Answers which were renewed: those it still holds, but for some that are being
    /// changed at this very moment.
    async fn renew_held(
        &self,
        scope: Option<&Tenant>,
        worker: &str,
        commands: &[CommandId],
        lasts: Duration,
    ) -> Result<Vec<CommandId>, StoreError>;

    /// Notes a sign of life of a worker that is known by its name only: what it has begun is held
    /// for [`SILENCE_MAX`] from now, or to the end of its limit. What it has claimed and not begun
    /// is not. How many.
    async fn heard_of(&self, scope: Option<&Tenant>, worker: &str) -> Result<usize, StoreError>;

    /// Ends the leases of everything a worker holds. How many.
    async fn end_held(&self, scope: Option<&Tenant>, worker: &str) -> Result<usize, StoreError>;

    /// Lets leases end `within` from now at the latest, for workers that don't name the commands they
    /// hold. Leases with an earlier limit keep it.
    ///
    /// Returns the limit of each database in which there was such a lease.
    async fn limit_held(
        &self,
        scope: Option<&Tenant>,
        by: HeldBy<'_>,
        within: Duration,
    ) -> Result<Vec<HeldLimit>, StoreError>;

    /// Those of these commands that have a lease, by id.
    async fn held(&self, commands: &[CommandId]) -> Result<Vec<HeldCommand>, StoreError>;

    /// Returns the commands of an execution that workers hold under a lease, by ID.
    async fn held_of(&self, execution: ExecutionId) -> Result<Vec<CommandRow>, StoreError>;

    /// Takes commands whose leases have ended, longest ended first; each comes again after `again`
    /// unless it is over by then. Two callers at once get different ones.
    async fn take_ended(
        &self,
        limit: usize,
        again: Duration,
    ) -> Result<Vec<CommandRow>, StoreError>;
}
